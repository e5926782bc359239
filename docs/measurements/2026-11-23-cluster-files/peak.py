"""Runs a command and prints on standard error its rank, and the most memory in kB that it had: anonymous, and resident in all."""
import os
import sys
import time

process = os.fork()
if process == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
peak = 0
while True:
    ended, status, usage = os.wait4(process, os.WNOHANG)
    if ended:
        break
    try:
        with open(f"/proc/{process}/status") as lines:
            peak = max([peak] + [int(line.split()[1]) for line in lines if line.startswith("RssAnon")])
    except OSError:
        pass
    time.sleep(0.01)
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "-")
sys.stderr.write(f"{rank},{peak},{usage.ru_maxrss}\n")
sys.exit(os.waitstatus_to_exitcode(status))
