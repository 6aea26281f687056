# SPDX-License-Identifier: Apache-2.0
"""Random kernels run event by event: no race with the planned syncs, and one without any of them."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded

from tests.asked import asked

from .kernel import lines, plan
from .random_kernels import kernels
from .simulator import findings

_SETTINGS = settings(
    max_examples=asked(40, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@seeded(5)
@_SETTINGS
@given(kernels())
def test_syncs_are_enough_and_none_is_too_many(body):
    planned = plan(*body)
    assert findings(body, planned, first=True) == [], lines(planned)
    for sync in planned["report"]:
        assert findings(body, planned, without=int(sync["number"]), first=True), (sync, lines(planned))


@seeded(6)
@_SETTINGS
@given(kernels(vocabulary="bang"))
def test_cores_without_flags_wait_no_more_than_they_must(body):
    planned = plan(*body, vocabulary="bang")
    assert findings(body, planned, first=True) == [], lines(planned)
    for sync in planned["report"]:
        assert findings(body, planned, without=int(sync["number"]), first=True), (sync, lines(planned))


@seeded(7)
@_SETTINGS
@given(kernels(periodic=False))
def test_syncs_are_enough_where_addresses_move_on(body):
    """Where it is not decided which iterations meet, they are taken to: enough, if not always the least."""
    assert findings(body, plan(*body), first=True) == []
