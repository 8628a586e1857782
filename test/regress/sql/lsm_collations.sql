-- A server may have been built without ICU: lsm_collations_1.out.
SELECT NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') AS skip \gset
\if :skip
\quit
\endif
-- The pattern classes use the type's own operator "=". Under a nondeterministic
-- collation, that is not the equality of bytes by which the class compares.
CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE cased (t text COLLATE ignore_case);
INSERT INTO cased VALUES ('Hello'), ('HELLO'), ('hello'), ('world');
CREATE INDEX ON cased USING lsm (t text_pattern_ops);
CREATE UNLOGGED TABLE cased_unlogged (t char(5) COLLATE ignore_case);
CREATE INDEX ON cased_unlogged USING lsm (t bpchar_pattern_ops);
-- The plain class compares as the collation does.
CREATE INDEX ON cased USING lsm (t);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM cased WHERE t = 'hello';
DROP TABLE cased, cased_unlogged;
DROP COLLATION ignore_case;
