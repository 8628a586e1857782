"""One table on several servers, compared with the same table on one. tools/scaleout.sh starts it."""
