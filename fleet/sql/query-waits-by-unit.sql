-- SPDX-License-Identifier: GPL-2.0-or-later
-- Which units waited for longest, on how many hosts, and the reason of the row with the most blocked time. Times are
-- ns since 1970.
-- A window that was sent twice counts once: the insert with the lowest attempt.
SELECT unit, sum(blocked_ns), sum(count), uniqExact(host), argMax(reason, blocked_ns), max(max_ns)
FROM @DATABASE@.rows
WHERE kind IN (1, 2, 3) AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@
  AND (host, start, attempt) IN (
    SELECT host, start, min(attempt) FROM @DATABASE@.rows
    WHERE kind = 0 AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@ GROUP BY host, start)
GROUP BY unit
HAVING sum(blocked_ns) > 0
ORDER BY sum(blocked_ns) DESC
LIMIT 20
