"""The report's facts about the machine, read from /proc, and two cheap disk measurements."""

import mmap
import os
import platform
import random
import statistics
import time


def _first_line_with(path, start):
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(start):
                    return line.split(":", 1)[-1].split("=", 1)[-1].strip().strip('"')
    except OSError:
        pass
    return "unknown"


def _file_system(folder):
    """(device, type) of the mount that a folder is on."""
    best = ("", "unknown", "unknown")
    with open("/proc/mounts") as mounts:
        for line in mounts:
            device, point, kind = line.split()[:3]
            if (folder + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best[0]):
                best = (point, device, kind)
    return best[1:]


def fsync_ms(folder, count=50):
    """Milliseconds to write and sync one block: the median."""
    path = os.path.join(folder, "disk-test")
    block, times = os.urandom(8192), []
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.write(file, block * count)
        os.fsync(file)
        for i in range(count):
            os.pwrite(file, block, i * 8192)
            begin = time.perf_counter()
            os.fdatasync(file)
            times.append((time.perf_counter() - begin) * 1000)
    finally:
        os.close(file)
        os.unlink(path)
    return statistics.median(times)


def random_reads(folder, size_mb, seconds):
    """Blocks of 8 kB a second, read sequentially past the page cache; None if that is impossible."""
    path = os.path.join(folder, "disk-test")
    block = mmap.mmap(-1, 8192)         # direct reads need aligned memory
    try:
        with open(path, "wb") as file:
            for _ in range(size_mb):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            count, begin = 0, time.perf_counter()
            while time.perf_counter() - begin < seconds:
                os.preadv(file, [block], random.randrange(size_mb * 128) * 8192)
                count += 1
            return count / (time.perf_counter() - begin)
        finally:
            os.close(file)
    except OSError:
        return None
    finally:
        if os.path.exists(path):
            os.unlink(path)


def facts(folder, quick):
    """A dictionary of the machine's facts, for run.json and the report."""
    device, kind = _file_system(os.path.realpath(folder))
    memory_kb = int(_first_line_with("/proc/meminfo", "MemTotal").split()[0])
    reads = random_reads(folder, 16 if quick else 512, 0.1 if quick else 2.0)
    return {
        "CPU": "%s, %d cores" % (_first_line_with("/proc/cpuinfo", "model name"), os.cpu_count()),
        "memory": "%.1f GB" % (memory_kb / 1e6),
        "system": "%s, Linux %s" % (_first_line_with("/etc/os-release", "PRETTY_NAME"), platform.release()),
        "file system": "%s on %s" % (kind, device),
        "write and sync of one block": "%.2f ms" % fsync_ms(folder),
        "random reads of 8 kB, one by one": "%.0f a second" % reads if reads else "not measured",
    }
