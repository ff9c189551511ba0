"""An example ROS 2 node that connects a device with a SFIHILO console over HTTP.

    SFIHILO_TOKEN=... ros2 run my_package sfihilo_node --ros-args \
        -p address:=http://192.168.7.1:8765 -p session:=P07-1

Topics, as JSON in std_msgs/String, so that no message package has to be built:

    sfihilo/policy    out   {"trial": 3, "policy": {"peak_torque": 31.5}}
    sfihilo/stop      out   {}                       bring the device to rest
    sfihilo/reached   in    {"trial": 3}             the device has the policy
    sfihilo/outcome   in    {"trial": 3, "outcome": {"comfort": 6.5, "speed": null}}

Copy clients/python/sfihilo_client.py beside this file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

from sfihilo_client import Client, DeviceLoop, Outcome, Policy

try:  # ROS 2 is not on the package index: the node runs where ROS 2 is installed
    import rclpy
    from rclpy.node import Node
    from std_msgs.msg import String
except ImportError:
    rclpy = None
    Node = object

REACH_WITHIN = 5.0  # seconds


class DeviceSilentError(RuntimeError):
    """The device did not report that it has the policy."""


class Bridge:
    """Topics on one side, a session on the other; no ROS in it.

    publish(topic, text) sends a message. wait(seconds) lets messages arrive for a moment.
    """

    def __init__(
        self,
        client: Any,
        session: str,
        publish: Callable[[str, str], object],
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._publish, self._wait = publish, wait
        self._wanted: int | None = None
        self._reached: int | None = None
        self._outcome: Outcome | None = None
        self.loop = DeviceLoop(client, session, self._apply, self._measure, self._stop)

    def step(self) -> None:
        """To be called about twice per second."""
        self.loop.step()

    def on_reached(self, text: str) -> None:
        """A message of sfihilo/reached."""
        told = _message(text)
        if told is not None and told.get("trial") == self._wanted:
            self._reached = self._wanted

    def on_outcome(self, text: str) -> None:
        """A message of sfihilo/outcome; one of an earlier trial is ignored."""
        told = _message(text)
        if told is None or told.get("trial") != self._wanted or self._wanted is None:
            return
        if isinstance(told.get("outcome"), dict):
            self._outcome = told["outcome"]

    def _apply(self, policy: Policy) -> None:
        self._wanted, self._reached, self._outcome = self.loop.trial, None, None
        text = json.dumps({"trial": self._wanted, "policy": policy})
        end = time.monotonic() + REACH_WITHIN
        while self._reached != self._wanted:
            self._publish("sfihilo/policy", text)
            self._wait(0.1)
            if time.monotonic() > end:
                self._stop()
                raise DeviceSilentError(f"policy: not reached within {REACH_WITHIN:g} s")

    def _measure(self) -> Outcome | None:
        outcome, self._outcome = self._outcome, None
        return outcome

    def _stop(self) -> None:
        self._wanted = None
        self._publish("sfihilo/stop", "{}")


def _message(text: str) -> dict[str, Any] | None:
    try:
        told = json.loads(text)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


class SfihiloNode(Node):  # type: ignore[misc]
    """The node: parameters `address` and `session`, the token from the environment."""

    def __init__(self) -> None:
        super().__init__("sfihilo")
        self.declare_parameter("address", "http://127.0.0.1:8765")
        self.declare_parameter("session", "")
        client = Client(
            self.get_parameter("address").value, os.environ["SFIHILO_TOKEN"], timeout=2.0
        )
        self._topics = {
            name: self.create_publisher(String, name, 10)
            for name in ("sfihilo/policy", "sfihilo/stop")
        }
        self.bridge = Bridge(
            client,
            self.get_parameter("session").value,
            self._send,
            lambda seconds: rclpy.spin_once(self, timeout_sec=seconds),
        )
        self.create_subscription(
            String, "sfihilo/reached", lambda message: self.bridge.on_reached(message.data), 10
        )
        self.create_subscription(
            String, "sfihilo/outcome", lambda message: self.bridge.on_outcome(message.data), 10
        )

    def _send(self, topic: str, text: str) -> None:
        self._topics[topic].publish(String(data=text))


def main() -> None:
    """Follow the session until Ctrl-C."""
    if rclpy is None:
        raise SystemExit("rclpy: expected an environment with ROS 2 (source its setup.bash first)")
    rclpy.init()
    node = SfihiloNode()
    try:
        while rclpy.ok():
            node.bridge.step()
            rclpy.spin_once(node, timeout_sec=0.5)
    finally:
        node._send("sfihilo/stop", "{}")
        node.destroy_node()


if __name__ == "__main__":
    main()
