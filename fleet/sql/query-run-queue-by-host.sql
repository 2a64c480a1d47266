-- SPDX-License-Identifier: GPL-2.0-or-later
-- For how much of each second threads of a host were ready to run and had no CPU, and the part of it for
-- which a CPU quota was used up. Times are ns since 1970.
-- A window that was sent twice counts once: the insert with the lowest attempt.
SELECT host, sum(h_runnable_ns) / sum(h_covered_ns), sum(h_throttled_ns) / sum(h_covered_ns), max(h_cpus),
  sum(h_covered_ns)
FROM @DATABASE@.rows
WHERE kind = 0 AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@
  AND (host, start, attempt) IN (
    SELECT host, start, min(attempt) FROM @DATABASE@.rows
    WHERE kind = 0 AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@ GROUP BY host, start)
GROUP BY host
HAVING sum(h_covered_ns) > 0
ORDER BY sum(h_runnable_ns) / sum(h_covered_ns) DESC
LIMIT 50
