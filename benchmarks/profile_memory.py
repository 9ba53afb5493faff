"""What a second optimization profile costs in memory, once both have run."""

import json
import subprocess
import sys

from minilm import write_models
from timing import median_of, report

CODE = """
import json, sys
import numpy as np
from executorch_tensorrt import Module

def anonymous_mb():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))

module = Module(sys.argv[1], optimization_profile="auto")
module.method_meta()
sizes = [anonymous_mb()]
for length in (16, 128):
    module.forward(*[np.ones((1, length), np.int64)] * 2)
    sizes.append(anonymous_mb())
print(json.dumps(sizes))
"""


def growth(program: str) -> tuple[float, float]:
    """Megabytes that the first and the second profile add to the process."""
    command = [sys.executable, "-W", "ignore", "-c", CODE, program]
    before, first, second = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return first - before, second - first


if __name__ == "__main__":
    program = write_models()["engine"]
    report(
        "profile_memory",
        "A second profile of MiniLM adds less than a tenth of what the first does: weights are packed once.",
        {
            "first_profile_mb": round(median_of(3, lambda: growth(program)[0]), 1),
            "second_profile_mb": round(median_of(3, lambda: growth(program)[1]), 1),
        },
    )
