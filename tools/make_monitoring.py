#!/usr/bin/env python3
"""Writes the collectors in monitoring/ from monitoring/queries.sql, whose header describes the form of the queries.

    tools/make_monitoring.py             brings the collectors up to date
    tools/make_monitoring.py --check     changes nothing; the exit status is 1 if a collector is out of date, if a panel
                                         of the dashboard or a rule names a metric that does not exist, or if no panel
                                         and no rule uses a metric

All collectors lead to the metrics NAME_COLUMN, for example pg_lsm_state_runs; monitoring/prometheus/prometheus.yml
renames those that need it.
"""

import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "monitoring"
SOURCE = "queries.sql"
DASHBOARD = "grafana/pg_lsm.json"
RULES = "prometheus/pg_lsm.rules.yml"
HEAD = "# tools/make_monitoring.py makes this file from queries.sql.\n"

QUERY = re.compile(r"^--- (\w+), every (\d+) seconds: (.*)\n((?:(?!---).*\n)+)", re.M)
COLUMN = re.compile(r"(\w+),?\s*-- (label|counter|gauge): (.*)$", re.M)


class Query:
    def __init__(self, name, seconds, description, text):
        self.name = name
        self.seconds = int(seconds)
        self.description = description
        self.columns = COLUMN.findall(text)
        self.sql = re.sub(r"\s*-- .*", "", text).strip().rstrip(";").expandtabs(2)

    def named(self, *kinds):
        return [column for column, kind, _ in self.columns if kind in kinds]

    def metrics(self):
        return {f"{self.name}_{column}" for column in self.named("counter", "gauge")}


def block(text, indent):
    return "".join(" " * indent + line + "\n" for line in text.splitlines())


def sql_exporter(queries):
    result = HEAD + """#
# For prometheus-sql-exporter of Debian, which is github.com/justwatchcom/sql_exporter. The environment variable
# PG_LSM_DATABASE is the database: postgres://ROLE:PASSWORD@HOST/DATABASE?sslmode=require. For more databases, add
# lines to "connections".
jobs:
"""
    for seconds in sorted({query.seconds for query in queries}):
        result += f"""- name: pg_lsm_{seconds}
  interval: {seconds}s
  connections:
  - '{{{{PG_LSM_DATABASE}}}}'
  startup_sql:
  - SET lock_timeout = '500ms'
  - SET statement_timeout = '5s'
  queries:
"""
        for query in queries:
            if query.seconds == seconds:
                result += f"""  - name: {query.name}
    help: {json.dumps(query.description)}
    labels: [{", ".join(query.named("label"))}]
    values: [{", ".join(query.named("counter", "gauge"))}]
    allow_zero_rows: true
    query: |
{block(query.sql, 6)}"""
    return result


def pg_exporter(queries):
    result = HEAD + """#
# For pg_exporter (github.com/Vonng/pg_exporter): copy the file to its folder of collectors, /etc/pg_exporter.
"""
    for query in queries:
        result += f"""{query.name}:
  name: {query.name}
  desc: {json.dumps(query.description)}
  query: |
{block(query.sql, 4)}  ttl: {query.seconds - 5}
  timeout: {5 if query.seconds > 15 else 1}
  min_version: 150000
  tags: ["extension:pg_lsm"]
  metrics:
"""
        for column, kind, description in query.columns:
            result += f"  - {column}: {{usage: {kind.upper()}, description: {json.dumps(description)}}}\n"
    return result


def pgwatch(queries):
    result = HEAD + """#
# For pgwatch 3 and later (github.com/cybertec-postgresql/pgwatch): metrics, and the preset pg_lsm.
metrics:
"""
    for query in queries:
        columns = ["(extract(epoch FROM now()) * 1e9)::bigint AS epoch_ns"]
        columns += [f"{column} AS tag_{column}" if kind == "label" else column for column, kind, _ in query.columns]
        sql = "SELECT " + ", ".join(columns) + "\nFROM (\n" + block(query.sql, 2) + ") q"
        result += f"""  {query.name}:
    description: {json.dumps(query.description)}
    sqls:
      15: |
{block(sql, 8)}    gauges: [{", ".join(query.named("gauge"))}]
    statement_timeout_seconds: 5
"""
    result += """presets:
  pg_lsm:
    description: what the dashboard and the alerts of pg_lsm need
    metrics:
"""
    return result + "".join(f"      {query.name}: {query.seconds}\n" for query in queries)


def panels(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def check_uses(metrics):
    """What is wrong with the names in the dashboard and in the rules."""
    used = {}
    dashboard = json.loads((FOLDER / DASHBOARD).read_text())
    texts = [(RULES, (FOLDER / RULES).read_text())]
    for variable in dashboard["templating"]["list"]:
        texts.append((f'{DASHBOARD}, variable "{variable["name"]}"', json.dumps(variable)))
    for panel in panels(dashboard):
        for target in panel.get("targets", []):
            texts.append((f'{DASHBOARD}, panel "{panel["title"]}"', target["expr"]))
    for place, text in texts:
        for metric in re.findall(r"\bpg_lsm_(?:index|state|size|database)\w+", text):
            used.setdefault(metric, place)
    for metric in sorted(set(used) - metrics):
        yield f"{used[metric]}: there is no metric {metric}"
    for metric in sorted(metrics - set(used)):
        yield f"{SOURCE}: no panel and no rule uses {metric}"


def main():
    queries = [Query(*parts) for parts in QUERY.findall((FOLDER / SOURCE).read_text())]
    problems = []
    for name, text in (("sql_exporter.yml", sql_exporter(queries)), ("pg_exporter.yml", pg_exporter(queries)),
                       ("pgwatch.yaml", pgwatch(queries))):
        path = FOLDER / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            problems.append(f"monitoring/{name} is out of date; run tools/make_monitoring.py")
    if "--check" in sys.argv:
        problems += check_uses(set().union(*(query.metrics() for query in queries)))
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(1 if problems else 0)


main()
