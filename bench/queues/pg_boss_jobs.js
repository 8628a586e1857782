// pg-boss: pg_boss_jobs.js DSN JOBS CONCURRENCY
// Prints the seconds it took to enqueue the jobs and to work them. With JOBS = 0, only creates the tables and the queue.

const PgBoss = require("pg-boss");

const BATCH = 100;
const FETCHED = 5;
const [connectionString, jobs, concurrency] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

async function work(boss) {
	for (;;) {
		const fetched = await boss.fetch("jobs", { batchSize: FETCHED });
		if (!fetched || fetched.length === 0)
			return;
		await boss.complete("jobs", fetched.map((job) => job.id));
	}
}

async function main() {
	const boss = new PgBoss({ connectionString, max: concurrency + 2 });
	await boss.start();
	if (jobs === 0) {
		await boss.createQueue("jobs");
		process.exit(0);
	}
	const begin = performance.now();
	for (let first = 0; first < jobs; first += BATCH)
		await boss.insert(Array.from({ length: BATCH }, (_, i) => ({ name: "jobs", data: { number: first + i } })));
	const middle = performance.now();
	await Promise.all(Array.from({ length: concurrency }, () => work(boss)));
	console.log(((middle - begin) / 1000).toFixed(3), ((performance.now() - middle) / 1000).toFixed(3));
	process.exit(0);
}

main().catch((error) => { console.error(error); process.exit(1); });
