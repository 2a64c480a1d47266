-- SPDX-License-Identifier: GPL-2.0-or-later
-- For how much of each second threads of a host were ready to run and had no CPU, and the part of it for
-- which a CPU quota was used up. Times are ns since 1970.
-- Each second of a host counts once. Windows overlap if they were sent twice, or if one of a minute is beside those
-- of 5 s: the one counts that begins first; of those that begin together the longest, and of the same two the one
-- with the lowest attempt. To find it, the starts and ends of a host are put in order: it begins while none is open.
-- So of windows of which each overlaps the next, as of two machines with one name, only the first counts.
SELECT host, sum(h_runnable_ns) / sum(h_covered_ns), sum(h_throttled_ns) / sum(h_covered_ns), max(h_cpus),
  sum(h_covered_ns)
FROM @DATABASE@.rows
WHERE kind = 0 AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@
  AND (host, start, attempt) IN (
    SELECT host, tupleElement(first, 1), tupleElement(first, 4) FROM (
      SELECT host, arraySort(arrayConcat(
        groupArray((toUInt64(end - 1000000), toUInt8(0), toUInt64(0), toUInt64(0))),
        groupArray((start, toUInt8(1), bitNot(end), attempt)))) AS edges,
        arrayFilter((edge, n) -> tupleElement(edge, 2) = 1 AND n = 1, edges,
          arrayCumSum(arrayMap(edge -> if(tupleElement(edge, 2) = 1, 1, -1), edges))) AS firsts
      FROM @DATABASE@.rows WHERE kind = 0 AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@
      GROUP BY host)
    ARRAY JOIN firsts AS first)
GROUP BY host
HAVING sum(h_covered_ns) > 0
ORDER BY sum(h_runnable_ns) / sum(h_covered_ns) DESC
LIMIT 50
