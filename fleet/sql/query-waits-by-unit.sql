-- SPDX-License-Identifier: GPL-2.0-or-later
-- Which units waited for longest, on how many hosts, and the reason of the row with the most blocked time. Times are
-- ns since 1970.
-- Each second of a host counts once. Windows overlap if they were sent twice, or if one of a minute is beside those
-- of 5 s: the one counts that begins first; of those that begin together the longest, and of the same two the one
-- with the lowest attempt. To find it, the starts and ends of a host are put in order: it begins while none is open.
-- So of windows of which each overlaps the next, as of two machines with one name, only the first counts.
SELECT unit, sum(blocked_ns), sum(count), uniqExact(host), argMax(reason, blocked_ns), max(max_ns)
FROM @DATABASE@.rows
WHERE kind IN (1, 2, 3) AND probe = 'offcpu' AND start >= @SINCE@ AND start < @UNTIL@
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
GROUP BY unit
HAVING sum(blocked_ns) > 0
ORDER BY sum(blocked_ns) DESC
LIMIT 20
