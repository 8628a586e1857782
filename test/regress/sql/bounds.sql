-- Positions: empty ranges, bounds between and outside the values, keys that are prefixes
-- of others, long keys, rows larger than usual.
CREATE TABLE p (a text COLLATE "C", b text COLLATE "C", id serial);
CREATE INDEX p_ab ON p USING lsm (a, b);
INSERT INTO p (a, b)
SELECT repeat('a', i % 10), repeat('b', i % 7) FROM generate_series(1, 100) i;
INSERT INTO p (a, b)
SELECT repeat('a', i % 10) || E'\x01', E'\x01' || repeat('b', i % 7) FROM generate_series(1, 50) i;
SELECT q, t.same('SELECT * FROM p WHERE ' || q) FROM unnest(ARRAY[
	'a = ''''', 'a = ''a''', 'a = ''aa'' AND b = ''bb''', 'a = ''aa'' AND b < ''bb''', 'a = ''aa'' AND b <= ''''', 'a > ''aaa'' AND b = ''b''', 'a < ''a''', 'a <= ''''', 'a > ''aaaaaaaaaa''',
	'a >= ''aa'' AND a < ''aaa''', 'a > ''aa'' AND a <= ''aab''', E'a > ''aa'' AND a <= ''aa\x01''', E'a = ''aa\x01''', E'a = ''aa'' AND b > ''\x01''', E'a < ''aa\x01'' AND a > ''a\x01''']) q;
SELECT t.same_order('p', 'a, b, id', 'a, b');

-- Keys near the size limit, next to short ones.
CREATE TABLE big (k text COLLATE "C", n int);
ALTER TABLE big ALTER k SET STORAGE plain;
CREATE INDEX big_k ON big USING lsm (k);
CREATE INDEX big_nk ON big USING lsm (n, k DESC);
INSERT INTO big SELECT repeat(chr(97 + i % 3), (i * 97) % 2600), i FROM generate_series(1, 120) i;
INSERT INTO big SELECT repeat('x', 2590) || i, i FROM generate_series(1, 30) i;
SELECT lsm_check('big_k', true), lsm_check('big_nk', true);
SELECT t.same_order('big', 'k, n', 'k'), t.same_order('big', 'k, n', 'n, k DESC');
SELECT t.same('SELECT n FROM big WHERE k > repeat(''x'', 2590)'), t.same('SELECT n FROM big WHERE k = repeat(''x'', 2590) || ''17'''), t.same('SELECT n FROM big WHERE k < repeat(''b'', 1000)');
-- The same with numeric keys, whose encoding varies in length.
CREATE TABLE bignum (k numeric, n int);
CREATE INDEX bignum_k ON bignum USING lsm (k);
INSERT INTO bignum SELECT ('1' || repeat('0', i * 30))::numeric + i, i FROM generate_series(1, 120) i;
INSERT INTO bignum SELECT -k, n FROM bignum;
INSERT INTO bignum SELECT k / 7, n FROM bignum WHERE n < 50;
SELECT t.same_order('bignum', 'k, n', 'k');
SELECT t.same('SELECT n FROM bignum WHERE k > 1e500'), t.same('SELECT n FROM bignum WHERE k BETWEEN -1e100 AND 1e100');
SELECT lsm_check('bignum_k', true);

-- Many columns: 32 is the limit of PostgreSQL.
DO $$
BEGIN
	EXECUTE 'CREATE TABLE cols (' || (SELECT string_agg('c' || i || ' int', ', ') FROM generate_series(1, 32) i) || ')';
	EXECUTE 'CREATE INDEX cols_idx ON cols USING lsm (' || (SELECT string_agg('c' || i || CASE WHEN i % 3 = 0 THEN ' DESC' ELSE '' END, ', ') FROM generate_series(1, 32) i) || ')';
	EXECUTE 'INSERT INTO cols SELECT ' || (SELECT string_agg(format('CASE WHEN i %% %s = 0 THEN NULL ELSE i %% %s END', i + 1, i % 4 + 1), ', ') FROM generate_series(1, 32) i) || ' FROM generate_series(1, 200) i';
END $$;
SELECT lsm_check('cols_idx', true);
SELECT t.same_order('cols', 'c1, c2, c3, c31, c32', (SELECT string_agg('c' || i || CASE WHEN i % 3 = 0 THEN ' DESC' ELSE '' END, ', ') FROM generate_series(1, 32) i));
SELECT t.same('SELECT * FROM cols WHERE c1 = 0 AND c2 = 1 AND c3 = 2 AND c4 > 1 AND c32 = 0');

-- Rows near the end of a large table have large TIDs.
CREATE TABLE far (k int, filler text) WITH (fillfactor = 10);
ALTER TABLE far ALTER filler SET STORAGE plain;
INSERT INTO far SELECT i % 10, repeat('f', 7000) FROM generate_series(1, 2000) i;
CREATE INDEX far_k ON far USING lsm (k);
INSERT INTO far SELECT i % 10, repeat('f', 7000) FROM generate_series(1, 100) i;
SELECT t.same('SELECT k, ctid FROM far WHERE k = 3'), t.same_order('far', 'k, ctid', 'k');
-- Many line pointers on a page.
CREATE TABLE narrow (k bool);
INSERT INTO narrow SELECT i % 3 = 0 FROM generate_series(1, 1000) i;
CREATE INDEX narrow_k ON narrow USING lsm (k);
INSERT INTO narrow SELECT i % 3 = 0 FROM generate_series(1, 500) i;
SELECT t.same('SELECT k, ctid FROM narrow WHERE k'), t.same('SELECT k, ctid FROM narrow WHERE NOT k'), t.same('SELECT k, ctid FROM narrow WHERE k < true'), t.same_order('narrow', 'k, ctid', 'k');
SELECT lsm_check('far_k', true), lsm_check('narrow_k', true);
DROP TABLE p, big, bignum, cols, far, narrow;
