-- Batches of a unique index, against runs of every shape.
-- One key of a batch is there already, wherever it is: in a run of many segments, or of one page; first of a segment, or last.
CREATE TABLE ubs (k int, v int);
CREATE UNIQUE INDEX ubs_k ON ubs USING lsm (k);
INSERT INTO ubs SELECT i * 2, 0 FROM generate_series(1, 20000) i;
SELECT lsm_compact('ubs_k');
INSERT INTO ubs SELECT i * 2, 1 FROM generate_series(20001, 23000) i;
INSERT INTO ubs SELECT i * 2, 2 FROM generate_series(23001, 23100) i;
DO $$
DECLARE
	caught int := 0;
	missed int := 0;
BEGIN
	FOR i IN 1 .. 23100 BY 77 LOOP
		BEGIN
			INSERT INTO ubs SELECT CASE WHEN j = 50 THEN i * 2 ELSE (i * 31 + j * 401) % 46000 * 2 + 1 END, 3
			FROM generate_series(1, 100) j;
			missed := missed + 1;
		EXCEPTION WHEN unique_violation THEN
			IF SQLERRM LIKE '%ubs_k%' THEN caught := caught + 1; END IF;
		END;
	END LOOP;
	RAISE NOTICE '% caught, % missed', caught, missed;
END $$;
INSERT INTO ubs SELECT i * 2 + 1, 4 FROM generate_series(1, 23000) i;
SELECT count(*), count(DISTINCT k) FROM ubs;
DROP TABLE ubs;
