-- SPDX-License-Identifier: GPL-2.0-or-later
-- Hosts on which a unit waits much longer than on the average host that has it: the unit, the host, its time,
-- and how many times the average that is. Idle waits are left out. Times are ns since 1970.
-- A window that was sent twice counts once: the insert with the lowest attempt.
SELECT unit, host, ns, ns / (all_ns / hosts)
FROM (
  SELECT unit, host, sum(blocked_ns) AS ns
  FROM @DATABASE@.rows
  WHERE kind IN (1, 2, 3) AND idle = 0 AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@
    AND (host, start, attempt) IN (
      SELECT host, start, min(attempt) FROM @DATABASE@.rows
      WHERE kind = 0 AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@ GROUP BY host, start)
  GROUP BY unit, host
)
ANY INNER JOIN (
  SELECT unit, sum(blocked_ns) AS all_ns, uniqExact(host) AS hosts
  FROM @DATABASE@.rows
  WHERE kind IN (1, 2, 3) AND idle = 0 AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@
    AND (host, start, attempt) IN (
      SELECT host, start, min(attempt) FROM @DATABASE@.rows
      WHERE kind = 0 AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@ GROUP BY host, start)
  GROUP BY unit
) USING unit
WHERE all_ns > 0
ORDER BY ns / (all_ns / hosts) DESC, ns DESC
LIMIT 20
