-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- The tables of a fleet, for ClickHouse 22.3 and later.
-- Statements end with ";" at the end of a line. @DATABASE@ stands for the name of the database. The
-- statements below "-- version N" lead from version N - 1 to N. Changes go into a new version: a
-- version that was released stays as it is.
--
-- rows (windows as recorded) and rows60 (a minute each) have rows of five kinds:
--   kind 0  the header of one window: it is in the same block as the window's rows, so that there are
--           both or neither
--   kind 1  one row of the daemon's answer, as it is on the wire; of_rows is 1
--   kind 2  rows of one thread name of one process, of_rows in number, without their stacks: those of
--           threads that were preempted, and those of waits that are only counted
--   kind 3  the sum of all other rows of one control group, state, reason and idle
--   kind 4  no window, but the reason why there is none from start to end
-- Times are ns since 1970, names that end in _ns are durations. kstack and ustack are ids in stacks, 0 is
-- no stack. unit, function and module are what the daemon groups by; "" is none. max_end 0: not known.
-- What begins with h_ is in headers only: h_rows is the number of the window's rows of kinds 1 to 3,
-- h_of_rows that of the daemon's answer, h_total_ns and h_count the sums of both. h_json is the answer
-- itself without its rows. attempt tells apart two inserts of one window.
-- stacks: id is a hash of all other columns but seen (stackd-fleet(1) says how it is made); host_id is
-- the id that the daemon gives; an offset of -1 is none.
-- units: what rows60 says, summed by unit, for long ranges.

-- version 1
CREATE DATABASE IF NOT EXISTS @DATABASE@;
CREATE TABLE IF NOT EXISTS @DATABASE@.schema (version UInt32, applied DateTime)
ENGINE = ReplacingMergeTree(applied) ORDER BY version;
CREATE TABLE IF NOT EXISTS @DATABASE@.rows (
    day Date, start UInt64 CODEC(ZSTD(1)), end UInt64 CODEC(ZSTD(1)), host LowCardinality(String), boot UUID,
    probe LowCardinality(String), attempt UInt64 CODEC(ZSTD(1)), kind UInt8 CODEC(ZSTD(1)),
    unit LowCardinality(String), cgroup LowCardinality(String), exe LowCardinality(String),
    pcomm LowCardinality(String), comm LowCardinality(String), pid UInt32 CODEC(ZSTD(1)),
    pstart UInt64 CODEC(ZSTD(1)), kernel UInt8 CODEC(ZSTD(1)), exited UInt8 CODEC(ZSTD(1)),
    own UInt8 CODEC(ZSTD(1)),
    idle UInt8 CODEC(ZSTD(1)), state LowCardinality(String), state_bits UInt32 CODEC(ZSTD(1)),
    reason LowCardinality(String), function LowCardinality(String), module LowCardinality(String),
    count UInt64 CODEC(ZSTD(1)), total_ns UInt64 CODEC(ZSTD(1)), blocked_ns UInt64 CODEC(ZSTD(1)),
    runnable_ns UInt64 CODEC(ZSTD(1)), throttled_ns UInt64 CODEC(ZSTD(1)),
    estimated UInt8 CODEC(ZSTD(1)), sampled UInt64 CODEC(ZSTD(1)), sampled_ns UInt64 CODEC(ZSTD(1)),
    open UInt32 CODEC(ZSTD(1)), open_ns UInt64 CODEC(ZSTD(1)), unseen UInt32 CODEC(ZSTD(1)),
    max_ns UInt64 CODEC(ZSTD(1)), max_end UInt64 CODEC(ZSTD(1)), max_tid UInt32 CODEC(ZSTD(1)),
    max_comm LowCardinality(String), buckets Array(UInt32) CODEC(ZSTD(1)),
    folded UInt32 CODEC(ZSTD(1)), of_rows UInt32 CODEC(ZSTD(1)), kstack UInt64 CODEC(ZSTD(1)),
    ustack UInt64 CODEC(ZSTD(1)),
    h_seq UInt64 CODEC(ZSTD(1)), h_windows UInt32 CODEC(ZSTD(1)), h_hook LowCardinality(String),
    h_rows UInt32 CODEC(ZSTD(1)), h_of_rows UInt32 CODEC(ZSTD(1)), h_total_ns UInt64 CODEC(ZSTD(1)),
    h_count UInt64 CODEC(ZSTD(1)),
    h_covered_ns UInt64 CODEC(ZSTD(1)), h_min_wait_ns UInt64 CODEC(ZSTD(1)),
    h_sample_below_ns UInt64 CODEC(ZSTD(1)), h_period_ns UInt64 CODEC(ZSTD(1)),
    h_processes UInt32 CODEC(ZSTD(1)), h_threads UInt32 CODEC(ZSTD(1)), h_cpus UInt32 CODEC(ZSTD(1)),
    h_on_cpu_ns UInt64 CODEC(ZSTD(1)), h_samples UInt64 CODEC(ZSTD(1)),
    h_runnable_ns UInt64 CODEC(ZSTD(1)), h_throttled_ns UInt64 CODEC(ZSTD(1)),
    h_blocked_ns UInt64 CODEC(ZSTD(1)), h_waits UInt64 CODEC(ZSTD(1)),
    h_short_waits UInt64 CODEC(ZSTD(1)), h_short_ns UInt64 CODEC(ZSTD(1)),
    h_sampled_ns UInt64 CODEC(ZSTD(1)), h_open_waits UInt32 CODEC(ZSTD(1)),
    h_unseen UInt32 CODEC(ZSTD(1)), h_unseen_ns UInt64 CODEC(ZSTD(1)), h_idle_threads UInt32 CODEC(ZSTD(1)),
    h_lost Array(String) CODEC(ZSTD(1)), h_lost_n Array(UInt64) CODEC(ZSTD(1)),
    h_gaps Array(String) CODEC(ZSTD(1)), h_gap_start Array(UInt64) CODEC(ZSTD(1)),
    h_gap_end Array(UInt64) CODEC(ZSTD(1)), h_json String CODEC(ZSTD(1)),
    INDEX k kstack TYPE bloom_filter GRANULARITY 4, INDEX u ustack TYPE bloom_filter GRANULARITY 4,
    CONSTRAINT own CHECK host = currentUser()
)
ENGINE = MergeTree PARTITION BY day ORDER BY (kind, probe, host, start)
TTL day + INTERVAL 3 DAY
SETTINGS non_replicated_deduplication_window = 1000;
CREATE TABLE IF NOT EXISTS @DATABASE@.rows60 (
    day Date, start UInt64 CODEC(ZSTD(1)), end UInt64 CODEC(ZSTD(1)), host LowCardinality(String), boot UUID,
    probe LowCardinality(String), attempt UInt64 CODEC(ZSTD(1)), kind UInt8 CODEC(ZSTD(1)),
    unit LowCardinality(String), cgroup LowCardinality(String), exe LowCardinality(String),
    pcomm LowCardinality(String), comm LowCardinality(String), pid UInt32 CODEC(ZSTD(1)),
    pstart UInt64 CODEC(ZSTD(1)), kernel UInt8 CODEC(ZSTD(1)), exited UInt8 CODEC(ZSTD(1)),
    own UInt8 CODEC(ZSTD(1)),
    idle UInt8 CODEC(ZSTD(1)), state LowCardinality(String), state_bits UInt32 CODEC(ZSTD(1)),
    reason LowCardinality(String), function LowCardinality(String), module LowCardinality(String),
    count UInt64 CODEC(ZSTD(1)), total_ns UInt64 CODEC(ZSTD(1)), blocked_ns UInt64 CODEC(ZSTD(1)),
    runnable_ns UInt64 CODEC(ZSTD(1)), throttled_ns UInt64 CODEC(ZSTD(1)),
    estimated UInt8 CODEC(ZSTD(1)), sampled UInt64 CODEC(ZSTD(1)), sampled_ns UInt64 CODEC(ZSTD(1)),
    open UInt32 CODEC(ZSTD(1)), open_ns UInt64 CODEC(ZSTD(1)), unseen UInt32 CODEC(ZSTD(1)),
    max_ns UInt64 CODEC(ZSTD(1)), max_end UInt64 CODEC(ZSTD(1)), max_tid UInt32 CODEC(ZSTD(1)),
    max_comm LowCardinality(String), buckets Array(UInt32) CODEC(ZSTD(1)),
    folded UInt32 CODEC(ZSTD(1)), of_rows UInt32 CODEC(ZSTD(1)), kstack UInt64 CODEC(ZSTD(1)),
    ustack UInt64 CODEC(ZSTD(1)),
    h_seq UInt64 CODEC(ZSTD(1)), h_windows UInt32 CODEC(ZSTD(1)), h_hook LowCardinality(String),
    h_rows UInt32 CODEC(ZSTD(1)), h_of_rows UInt32 CODEC(ZSTD(1)), h_total_ns UInt64 CODEC(ZSTD(1)),
    h_count UInt64 CODEC(ZSTD(1)),
    h_covered_ns UInt64 CODEC(ZSTD(1)), h_min_wait_ns UInt64 CODEC(ZSTD(1)),
    h_sample_below_ns UInt64 CODEC(ZSTD(1)), h_period_ns UInt64 CODEC(ZSTD(1)),
    h_processes UInt32 CODEC(ZSTD(1)), h_threads UInt32 CODEC(ZSTD(1)), h_cpus UInt32 CODEC(ZSTD(1)),
    h_on_cpu_ns UInt64 CODEC(ZSTD(1)), h_samples UInt64 CODEC(ZSTD(1)),
    h_runnable_ns UInt64 CODEC(ZSTD(1)), h_throttled_ns UInt64 CODEC(ZSTD(1)),
    h_blocked_ns UInt64 CODEC(ZSTD(1)), h_waits UInt64 CODEC(ZSTD(1)),
    h_short_waits UInt64 CODEC(ZSTD(1)), h_short_ns UInt64 CODEC(ZSTD(1)),
    h_sampled_ns UInt64 CODEC(ZSTD(1)), h_open_waits UInt32 CODEC(ZSTD(1)),
    h_unseen UInt32 CODEC(ZSTD(1)), h_unseen_ns UInt64 CODEC(ZSTD(1)), h_idle_threads UInt32 CODEC(ZSTD(1)),
    h_lost Array(String) CODEC(ZSTD(1)), h_lost_n Array(UInt64) CODEC(ZSTD(1)),
    h_gaps Array(String) CODEC(ZSTD(1)), h_gap_start Array(UInt64) CODEC(ZSTD(1)),
    h_gap_end Array(UInt64) CODEC(ZSTD(1)), h_json String CODEC(ZSTD(1)),
    INDEX k kstack TYPE bloom_filter GRANULARITY 4, INDEX u ustack TYPE bloom_filter GRANULARITY 4,
    CONSTRAINT own CHECK host = currentUser()
)
ENGINE = MergeTree PARTITION BY toMonday(day) ORDER BY (kind, probe, host, start)
TTL day + INTERVAL 31 DAY
SETTINGS non_replicated_deduplication_window = 1000;
CREATE TABLE IF NOT EXISTS @DATABASE@.stacks (
    id UInt64, host_id UInt64 CODEC(ZSTD(1)), kinds Array(LowCardinality(String)), frames Array(LowCardinality(String)),
    modules Array(LowCardinality(String)), offsets Array(Int64) CODEC(ZSTD(1)), flags Array(LowCardinality(String)),
    seen Date
)
ENGINE = ReplacingMergeTree(seen) ORDER BY (id, host_id)
TTL seen + INTERVAL 40 DAY;
CREATE TABLE IF NOT EXISTS @DATABASE@.hosts (
    host String, boot UUID, kernel String, version String, cpus UInt32, window_ns UInt64,
    probes Array(String), labels_k Array(String), labels_v Array(String), seen DateTime
)
ENGINE = ReplacingMergeTree(seen) ORDER BY (host, boot);

-- version 2
CREATE TABLE IF NOT EXISTS @DATABASE@.units (
    day Date, start UInt64 CODEC(ZSTD(1)), end UInt64 CODEC(ZSTD(1)), host LowCardinality(String), boot UUID,
    probe LowCardinality(String), attempt UInt64 CODEC(ZSTD(1)), kind UInt8 CODEC(ZSTD(1)),
    unit LowCardinality(String), kernel UInt8 CODEC(ZSTD(1)), idle UInt8 CODEC(ZSTD(1)),
    state LowCardinality(String), reason LowCardinality(String),
    count UInt64 CODEC(ZSTD(1)), total_ns UInt64 CODEC(ZSTD(1)), blocked_ns UInt64 CODEC(ZSTD(1)),
    runnable_ns UInt64 CODEC(ZSTD(1)), throttled_ns UInt64 CODEC(ZSTD(1)),
    sampled_ns UInt64 CODEC(ZSTD(1)), open_ns UInt64 CODEC(ZSTD(1)), max_ns UInt64 CODEC(ZSTD(1)),
    buckets Array(UInt32) CODEC(ZSTD(1)),
    h_rows UInt32 CODEC(ZSTD(1)), h_total_ns UInt64 CODEC(ZSTD(1)), h_covered_ns UInt64 CODEC(ZSTD(1)),
    h_threads UInt32 CODEC(ZSTD(1)),
    CONSTRAINT own CHECK host = currentUser()
)
ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY (kind, probe, host, start)
TTL day + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 1000;
