-- The relation of a user to an agent is visible if both users are: each of them has a visible role. A policy that reads
-- another table gets the rows that the other table's policy shows. The CASE keeps the planner from guessing that the
-- condition halves the rows: the query filter has left visible ones only.
CREATE POLICY visible ON user_agents FOR SELECT USING (CASE WHEN
    EXISTS (SELECT FROM user_roles held WHERE held.user_id = user_agents.user_id)
    AND EXISTS (SELECT FROM user_roles held WHERE held.user_id = user_agents.agent_id)
THEN 1 ELSE 0 END <> 0);
ALTER TABLE user_agents ENABLE ROW LEVEL SECURITY;
