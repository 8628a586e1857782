-- Conditions that are not operators of the class but imply some: plain booleans, patterns, networks.
-- Each must use the index, as with a btree.
CREATE TABLE k (f bool, s text COLLATE "C", v varchar(40) COLLATE "C", p text, c char(20), y bytea, m name COLLATE "C", n inet, id serial);
INSERT INTO k (f, s, v, p, c, y, m, n)
SELECT nullif(i % 3, 2)::bool, t, t, t, t, convert_to(t, 'UTF8'), t, ('10.' || i % 7 || '.' || i % 11 || '.' || i % 250)::inet
FROM generate_series(1, 600) i, LATERAL (SELECT CASE WHEN i % 50 = 0 THEN NULL ELSE chr(97 + i % 4) || repeat('b', i % 3) || i % 20 || CASE i % 30 WHEN 1 THEN '%' WHEN 2 THEN '_x' WHEN 3 THEN E'\\' WHEN 4 THEN E'\xef\xbf\xbf' ELSE '' END END AS t) x;
INSERT INTO k (s, v, p, c, n) VALUES ('', '', '', '', '10.1.0.0/16'), ('Ab1', 'Ab1', 'Ab1', 'Ab1', '::1'), (E'\x7f', E'\x7f', E'\x7f', E'\x7f', '10.1.2.0/24');
CREATE INDEX k_fid ON k USING lsm (f, id);
CREATE INDEX k_s ON k USING lsm (s);
CREATE INDEX k_v ON k USING lsm (v varchar_pattern_ops);
CREATE INDEX k_p ON k USING lsm (p text_pattern_ops DESC);
CREATE INDEX k_c ON k USING lsm (c bpchar_pattern_ops);
CREATE INDEX k_y ON k USING lsm (y);
CREATE INDEX k_m ON k USING lsm (m);
CREATE INDEX k_n ON k USING lsm (n);
SELECT q, t.same('SELECT id, f FROM k WHERE ' || q) FROM unnest(ARRAY['f', 'NOT f', 'f = true', 'f = false', 'f IS TRUE', 'f IS FALSE', 'f AND id > 500', 'NOT f AND id = 4', 'f ORDER BY id', 'NOT f ORDER BY id DESC LIMIT 7', 'f ORDER BY f, id',
	'f IS NULL', 'f > false']) q;
SELECT q, t.same('SELECT id FROM k WHERE ' || q) FROM unnest(ARRAY[
	's LIKE ''abb1%''', 's LIKE ''ab_1%''', 's LIKE ''abb1''', 's LIKE ''a%'' ORDER BY s, id', 's LIKE E''b3\\\\%%''', 's LIKE ''''', 's ~ ''^abb''', 's ~ ''^abb1$''', 's ^@ ''cbb''', 'starts_with(s, ''cbb'')', 's ~* ''^12''', E's LIKE E''b4\uffff%''', 's LIKE NULL',
	'v LIKE ''abb1%''', 'v ~ ''^abb''', 'v ^@ ''cbb''', 'v = ''abb1''', 'v LIKE ''c%2'' AND v LIKE ''cb%''',
	'p LIKE ''abb1%''', 'p ~ ''^(abb1)''', 'p ^@ ''cbb''', 'p ~>~ ''d'' AND p LIKE ''d%''', E'p LIKE E''\x7f%''',
	'c LIKE ''abb1%''', 'y LIKE ''abb1%''', 'm LIKE ''abb1%''', 'm ~ ''^cbb''',
	'n << ''10.1.0.0/16''', 'n <<= ''10.1.2.0/24''', '''10.2.0.0/16'' >> n', '''10.2.0.0/16'' >>= n', 'n << ''::/0''', 'n <<= ''10.1.0.0/16'' ORDER BY n, id']) q;
-- In joins and prepared statements.  (A pattern that the planner does not know gives no condition.)
SET enable_seqscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE flagged(int) AS SELECT count(*) FROM k WHERE f AND id < $1;
EXECUTE flagged(100);
SELECT t.plan_has('EXECUTE flagged(100)', 'Index Cond.*f = true.*id < ');
DEALLOCATE flagged;
RESET plan_cache_mode;
SELECT count(*), t.plan_has('SELECT FROM k x JOIN k y ON y.f AND y.id = x.id + 1 WHERE x.s LIKE ''abb%''', 'Index Cond.*f = true') FROM k x JOIN k y ON y.f AND y.id = x.id + 1 WHERE x.s LIKE 'abb%';
DROP TABLE k;
