"""What must work on a machine that lacks something: a program that runs jobs, and prints what doctor says."""

from __future__ import annotations

STORY = """
import json, os, subprocess, sys
def aver(*words, status=0):
    done = subprocess.run([sys.executable, "-m", "aver", *words], capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout
aver("run", "--", "sh", "-c", "(setsid sleep 3333 &); exit 3", status=1)
eat = "import time; x = bytearray(200 << 20); time.sleep(60)"
aver("run", "--mem", "60M", "--", sys.executable, "-c", eat, status=4)
job = aver("submit", "--quiet", "--", "sleep", "1000").strip()
os.kill(json.loads(aver("status", "--json"))["pid"], 9)
aver("cancel", job)
aver("watch", job, "--exit-status", status=5)
print(aver("doctor", "--json"))
aver("stop")
"""
