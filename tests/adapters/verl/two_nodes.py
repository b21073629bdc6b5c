"""Two nodes of a Ray cluster on this machine: the head, and one that has the resource "envs"."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import ray

from tests.children import kill
from tests.plugins.leftovers import folder_with_short_path
from tests.plugins.startup import python_path

REPO = Path(__file__).parents[3]
ENVS = "envs"
_MEMORY = 80 * 2**20
_ADDED = {
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "500",  # for a lost node; slow ones have another setting
    "PYTHONPATH": python_path(REPO, REPO / "adapters" / "verl"),
    "RAY_worker_niceness": "0",  # as in training.py
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # the new behaviour, which warns less
    "RAY_USAGE_STATS_ENABLED": "0",
}


class TwoNodes:
    """A running cluster, to which this process is connected."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.head: str = cluster.head_node.node_id
        self.second = self.add(**{ENVS: 8})

    def add(self, cpus: int = 16, **resources: float) -> Any:
        """Start another node."""
        return self._cluster.add_node(num_cpus=cpus, resources=resources, object_store_memory=_MEMORY)

    def kill(self, node: Any) -> None:
        """Kill a node and everything on it, like a power failure."""
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        kill([raylet, *raylet.children(recursive=True)])
        self._cluster.remove_node(node, allow_graceful=False)


@contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    """Start the nodes; at the end they are gone, and this process is as before."""
    from ray.cluster_utils import Cluster

    environ, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
    os.environ.update(_ADDED)
    os.environ.pop("RAY_ADDRESS", None)
    head = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": _MEMORY}
    with folder_with_short_path("agr-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray leaves files open
        os.environ["RAY_TMPDIR"] = folder
        cluster = Cluster(initialize_head=True, head_node_args=head, shutdown_at_exit=False)
        try:
            ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
            yield TwoNodes(cluster)
        finally:
            ray.shutdown()
            cluster.shutdown()
            signal.signal(signal.SIGTERM, handler)
            os.environ.clear()
            os.environ.update(environ)
