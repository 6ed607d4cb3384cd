-- Functions of replication with positions in the log, without any replication.
select pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn(), pg_is_in_recovery();
select pg_replication_origin_progress('x', true);
select pg_replication_origin_session_progress(true);
select pg_replication_origin_advance('x', '0/1');
select pg_replication_origin_xact_setup('0/1', now());
select pg_replication_slot_advance('x', '0/1');
select * from pg_replication_slot_advance(null, '0/1');
select * from pg_show_replication_origin_status();
select * from pg_prepared_xact();
select * from pg_get_replication_slots();
select slot_name, restart_lsn + 1 from pg_get_replication_slots() where active;
select pg_xact_commit_timestamp('100');
select pg_xact_commit_timestamp('0');
select pg_xact_commit_timestamp('2'), pg_xact_commit_timestamp(null);
select * from pg_xact_commit_timestamp_origin('2');
select * from pg_last_committed_xact();
select * from pg_xact_commit_timestamp_origin('100');
