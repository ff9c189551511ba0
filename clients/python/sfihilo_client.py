"""A client of the SFIHILO console in one file: Python 3.10 or later, nothing else to install.

    client = Client("http://127.0.0.1:8765")
    client.enter("ABCD-2345")               # a code from the operator's page, once
    DeviceLoop(client, "P07-1", apply, measure, stop).run()

Every request that changes something has a key, and is repeated with the same key when the network
fails: it is done once.
"""

from __future__ import annotations

import json
import logging
import ssl
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

Policy = dict[str, float]
Outcome = dict[str, float | None]
ATTEMPTS = 4
LOGGER = logging.getLogger("sfihilo_client")


class ConsoleError(Exception):
    """The console refused a request; `kind` is its word for why, `status` that of HTTP."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(f"{kind} ({status}): {message}")
        self.status, self.kind, self.message = status, kind, message


class Client:
    """Requests to a console.

    token: from an earlier `enter`; keep it as you keep a password. cafile: the certificate of a
    console with TLS, if it signed its own.
    """

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        cafile: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        self.address = address.rstrip("/")
        self.token = token
        self.timeout = timeout
        handlers: list[Any] = [urllib.request.ProxyHandler({})]  # the console is in this network
        if self.address.startswith("https"):
            context = ssl.create_default_context(cafile=cafile)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def enter(self, code: str) -> str:
        """Exchange a code from the operator's page, once, for a token; returns the token."""
        self.token = str(self.post("/api/enter", {"code": code, "bearer": True})["token"])
        return self.token

    def get(self, path: str) -> Any:
        """What a path of the API says now."""
        return self._request("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Do something; repeats the request when the network fails."""
        data = json.dumps(body).encode()
        for attempt in range(ATTEMPTS):
            try:
                return self._request("POST", path, data)
            except (OSError, ConsoleError) as error:
                passing = not isinstance(error, ConsoleError) or error.status == 503
                if not passing or attempt == ATTEMPTS - 1:
                    raise
                time.sleep(0.2 * 2**attempt)
        raise AssertionError("unreachable")

    def _request(self, method: str, path: str, data: bytes | None) -> Any:
        headers = {"Content-Type": "application/json"} if data is not None else {}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(
            self.address + path, data=data, headers=headers, method=method
        )
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error) from None

    # A device

    def device(self, session: str) -> Any:
        """What the device is to do now: `trial`, `apply` and `stop`."""
        return self.get(f"/api/device/{quote(session)}")

    def heartbeat(self, session: str) -> Any:
        """A sign of life, and what the device is to do now."""
        return self._request("POST", f"/api/device/{quote(session)}/heartbeat", b"{}")

    def applied(self, session: str, trial: int, key: str | None = None) -> Any:
        """The trial's policy is on the device."""
        return self._keyed(f"/api/device/{quote(session)}/applied", key, trial=trial)

    def outcome(self, session: str, trial: int, outcome: Outcome, key: str | None = None) -> Any:
        """What was measured; None where it could not be."""
        path = f"/api/device/{quote(session)}/outcome"
        return self._keyed(path, key, trial=trial, outcome=outcome)

    def stop(self, session: str, why: str = "") -> Any:
        """Stop the device and put the session on hold; also for the operator."""
        return self._keyed(f"/api/sessions/{quote(session)}/stop", None, why=why)

    # An operator

    def session(self, session: str) -> Any:
        """Everything that the operator's page shows."""
        return self.get(f"/api/sessions/{quote(session)}")

    def create(self, participant: str, toml: str, **options: Any) -> str:
        """Begin a session that a TOML text describes; returns its name."""
        made = self._keyed("/api/sessions", None, participant=participant, toml=toml, **options)
        return str(made["session"])

    def act(self, session: str, action: str, *, key: str | None = None, **body: Any) -> Any:
        """Any action of a session: `act("P07-1", "choose", trial=3, choice="new")`."""
        return self._keyed(f"/api/sessions/{quote(session)}/{quote(action)}", key, **body)

    def _keyed(self, path: str, key: str | None, **body: Any) -> Any:
        return self.post(path, {**body, "key": key or uuid.uuid4().hex})


def _refusal(error: urllib.error.HTTPError) -> ConsoleError:
    try:
        told = json.load(error)
        return ConsoleError(error.code, str(told["error"]), str(told["message"]))
    except (ValueError, KeyError, TypeError):
        return ConsoleError(error.code, "unknown", str(error.reason))


class DeviceLoop:
    """Follows a session: applies, measures, stops.

    apply(policy): sets the device and returns when it is set; the same policy again does no harm.
    measure(): the outcome, or None while the walk is not over. stop(): brings the device to rest.
    Without the console for `patience` seconds the device is stopped.
    """

    def __init__(
        self,
        client: Any,
        session: str,
        apply: Callable[[Policy], object],
        measure: Callable[[], Outcome | None],
        stop: Callable[[], object],
        patience: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client, self.session = client, session
        self._apply, self._measure, self._stop = apply, measure, stop
        self._patience, self._clock = patience, clock
        self._heard = clock()
        self._resting = False  # where the device is at the begin is not known
        self.trial: int | None = None  # the one that `apply` is called for
        self._applied: int | None = None
        self._measured: int | None = None

    def run(self, every: float = 0.5) -> None:
        """Until an error of the device, or Ctrl-C; the device is stopped then."""
        try:
            while True:
                self.step()
                time.sleep(every)
        finally:
            self._rest()

    def step(self) -> None:
        """One heartbeat, and what follows from it."""
        try:
            wanted = self.client.heartbeat(self.session)
            self._heard = self._clock()
            self._follow(wanted)
        except ConsoleError as error:
            if error.status < 500:
                raise
            self._endure()
        except OSError:
            self._endure()

    def _endure(self) -> None:
        if self._clock() - self._heard > self._patience:
            self._rest()

    def _follow(self, wanted: Any) -> None:
        trial = wanted["trial"]
        number = None if trial is None else int(trial["number"])
        gone = self._applied not in (None, number, self._measured)
        if wanted["stop"] or gone:
            self._rest()
        if not wanted["apply"] or number is None or wanted["stop"]:
            return
        if number != self._applied:
            self._resting, self.trial = False, number
            self._apply(trial["policy"])
            self._applied = number
            self._tell(lambda: self.client.applied(self.session, number))
        elif number != self._measured:
            outcome = self._measure()
            if outcome is not None:
                self._tell(lambda: self.client.outcome(self.session, number, outcome))
                self._measured = number

    def _tell(self, request: Callable[[], object]) -> None:
        """Send what happened; what the console refuses is left to the operator, who sees it."""
        try:
            request()
        except ConsoleError as error:
            if error.status not in (400, 409, 422):
                raise
            LOGGER.warning("trial %s: %s", self.trial, error)

    def _rest(self) -> None:
        """Stop the device, once."""
        if not self._resting:
            self._stop()
            self._resting, self._applied = True, None
