"""The other process of the round trip: a recorder of markers and a sensor that reacts to them.

Usage: python -m tests.console.devices.lsl_lab NAME. After each marker `applied` it sends samples
that depend on the policy. It prints every marker as a line, and ends with the marker `answer`.
"""

import json
import sys
import time

import pylsl


def main(name: str) -> None:
    described = pylsl.StreamInfo(f"{name}-out", "Outcomes", 3, 100, "double64", f"{name}-sensor")
    channels = described.desc().append_child("channels")
    for label in ("time", "rate", "score"):
        channels.append_child("channel").append_child_value("label", label)
    outlet = pylsl.StreamOutlet(described)
    found = pylsl.resolve_byprop("name", f"{name}-markers", 1, 20.0)
    inlet = pylsl.StreamInlet(found[0], processing_flags=pylsl.proc_clocksync)
    inlet.open_stream(timeout=10.0)
    inlet.time_correction(timeout=10.0)
    print(json.dumps({"ready": True}), flush=True)
    torque, since = 0.0, pylsl.local_clock()
    while True:
        sample, stamp = inlet.pull_sample(timeout=0.01)
        if sample is not None:
            marker = json.loads(sample[0])
            late = pylsl.local_clock() - stamp
            print(json.dumps({**marker, "late": late}), flush=True)
            if marker["event"] == "applied":
                torque, since = marker["policy"]["peak_torque"], pylsl.local_clock()
            if marker["event"] == "answer":
                break
        now = pylsl.local_clock() - since
        # The rate is wrong while it settles, and the score is the last one given.
        outlet.push_sample([now, torque / 10 if now > 0.3 else 99.0, round(now, 1)])
    time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1])
