// Graphile Worker: graphile_jobs.js DSN JOBS CONCURRENCY
// Prints the seconds it took to enqueue the jobs and to work them. With JOBS = 0, only creates the tables.

const { Logger, makeWorkerUtils, run } = require("graphile-worker");
const { Pool } = require("pg");

const BATCH = 100;
const [connectionString, jobs, concurrency] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

async function main() {
	const logger = new Logger(() => () => {});
	const pgPool = new Pool({ connectionString, max: concurrency + 3 });
	const utils = await makeWorkerUtils({ pgPool, logger });
	if (jobs === 0) {
		await utils.migrate();
		process.exit(0);
	}
	const begin = performance.now();
	for (let first = 0; first < jobs; first += BATCH)
		await utils.addJobs(Array.from({ length: BATCH }, (_, i) => ({ identifier: "job", payload: { number: first + i } })));
	const middle = performance.now();
	let done = 0;
	let finish;
	const finished = new Promise((resolve) => { finish = resolve; });
	const taskList = { job: async () => { if (++done === jobs) finish(); } };
	const runner = await run({ pgPool, logger, concurrency, taskList, noHandleSignals: true });
	await finished;
	await runner.stop();
	console.log(((middle - begin) / 1000).toFixed(3), ((performance.now() - middle) / 1000).toFixed(3));
	process.exit(0);
}

main().catch((error) => { console.error(error); process.exit(1); });
