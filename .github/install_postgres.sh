#!/bin/sh
#
# Installs a version of PostgreSQL from its own apt repository, and what the tests need. Makes no cluster.
#
#   .github/install_postgres.sh MAJOR

set -eu
sudo apt-get update
sudo apt-get install -y postgresql-common
sudo /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y -v "$1"
echo 'create_main_cluster = false' | sudo tee -a /etc/postgresql-common/createcluster.conf
sudo apt-get install -y "postgresql-$1" "postgresql-server-dev-$1"
sudo env PG_CONFIG="/usr/lib/postgresql/$1/bin/pg_config" tools/install_deps.sh test
