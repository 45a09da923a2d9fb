-- A worker takes more jobs than it works on, so that the short one of a user is known while the long ones of another
-- run. Of one user it takes no more than `rag.worker_share` at a time. Otherwise the function is procrastinate's own,
-- without locks, which we do not use.

CREATE INDEX procrastinate_jobs_taken ON rag.procrastinate_jobs (worker_id) WHERE status = 'doing';
CREATE OR REPLACE FUNCTION rag.procrastinate_fetch_job_v2(target_queue_names character varying[], p_worker_id bigint)
    RETURNS rag.procrastinate_jobs
    LANGUAGE plpgsql AS $$
DECLARE
    share constant integer := nullif(current_setting('rag.worker_share', true), '')::integer;
    found_jobs rag.procrastinate_jobs;
BEGIN
    WITH candidate AS (
        SELECT jobs.*
        FROM rag.procrastinate_jobs AS jobs
        WHERE jobs.status = 'todo'
          AND (target_queue_names IS NULL OR jobs.queue_name = ANY (target_queue_names))
          AND (jobs.scheduled_at IS NULL OR jobs.scheduled_at <= now())
          AND (share IS NULL OR jobs.args ->> 'user_id' NOT IN (
              SELECT taken.args ->> 'user_id' FROM rag.procrastinate_jobs AS taken
              WHERE taken.worker_id = p_worker_id AND taken.status = 'doing'
              GROUP BY taken.args ->> 'user_id' HAVING count(*) >= share))
        ORDER BY jobs.priority DESC, jobs.id ASC LIMIT 1
        FOR UPDATE OF jobs SKIP LOCKED
    )
    UPDATE rag.procrastinate_jobs
    SET status = 'doing', worker_id = p_worker_id
    FROM candidate
    WHERE procrastinate_jobs.id = candidate.id
    RETURNING procrastinate_jobs.* INTO found_jobs;
    RETURN found_jobs;
END $$;
