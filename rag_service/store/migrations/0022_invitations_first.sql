-- Whether an invitation can be accepted, asked before the password is hashed, which takes memory and time.
-- Placeholder: {role}, the unprivileged role.

CREATE FUNCTION rag.is_invited(link bytea) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM rag.passwords p JOIN rag.users u ON u.id = p.user_id
        WHERE p.invitation = link AND p.invited_until > now() AND u.active) $$;

REVOKE EXECUTE ON FUNCTION rag.is_invited(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rag.is_invited(bytea) TO {role};
