#!/usr/bin/env python3
"""Draws the figures of a soak: soak_plot.py CSV PNG. Needs matplotlib."""

import csv
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

PANELS = (("lookups/s", "standby lookups/s"), ("slowest ms",),
          ("file MB", "live MB", "debt MB"), ("backend MB", "worker MB"), ("lag MB",))


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    minutes = [float(row["second"]) / 60 for row in rows]
    figure, panels = plt.subplots(len(PANELS), sharex=True, figsize=(8, 9),
                                  layout="constrained")
    for panel, fields in zip(panels, PANELS):
        for field in fields:
            panel.plot(minutes, [float(row[field]) for row in rows], label=field)
        panel.set_ylim(bottom=0)
        panel.legend(loc="upper left", frameon=False, ncols=len(fields))
        panel.grid(axis="y", color="#dddddd")
    panels[-1].set_xlabel("minutes")
    figure.savefig(sys.argv[2], dpi=100)


if __name__ == "__main__":
    main()
