-- SPDX-License-Identifier: GPL-2.0-or-later
-- What changed since a deploy: for each unit and reason, the time that threads waited in each second and host
-- before (from @BEFORE@) and after it (to @UNTIL@), the largest change first. Times are ns since 1970.
-- A window that was sent twice counts once: the insert with the lowest attempt.
SELECT unit, reason,
  sumIf(blocked_ns, start < @DEPLOY@) / (@DEPLOY@ - @BEFORE@) / greatest(uniqExactIf(host, start < @DEPLOY@), 1),
  sumIf(blocked_ns, start >= @DEPLOY@) / (@UNTIL@ - @DEPLOY@) / greatest(uniqExactIf(host, start >= @DEPLOY@), 1)
FROM @DATABASE@.rows
WHERE kind IN (1, 2, 3) AND idle = 0 AND probe = 'offcpu' AND start >= @BEFORE@ AND start < @UNTIL@
  AND (host, start, attempt) IN (
    SELECT host, start, min(attempt) FROM @DATABASE@.rows
    WHERE kind = 0 AND probe = 'offcpu' AND start >= @BEFORE@ AND start < @UNTIL@ GROUP BY host, start)
GROUP BY unit, reason
ORDER BY abs(sumIf(blocked_ns, start >= @DEPLOY@) / (@UNTIL@ - @DEPLOY@)
  - sumIf(blocked_ns, start < @DEPLOY@) / (@DEPLOY@ - @BEFORE@)) DESC
LIMIT 20
