# SPDX-License-Identifier: Apache-2.0
"""Pools of threads as kernels of uir-cpu want them, TVM's from the first compilation or run for us on.

Executables that C++ calls alone have threads of their own (`src/runtime/pool.h`), as many as TVM's pools.

Every thread that runs kernels has a pool, which TVM makes when that thread first needs it.  By itself it
takes every second CPU of an x86 machine for a hyperthread, wherever it runs, and binds its threads, and the
caller to those CPUs: every pool that the caller starts later (torch, OpenMP) would inherit that.
"""

from __future__ import annotations

import os
import threading

import tvm_ffi

from . import environment

#: ``ThreadGroup::AffinityMode`` of TVM's threading_backend.h.
BIG, ONE_CORE_EACH, ALL_CORES = 1, -2, -3

_here = threading.local()


def before_compiling() -> None:
    """Let pools that are made from now on be as they should; what the user's environment says stands.

    What is compiled may run in any thread, by TVM alone, or in a process forked from this one, where a pool
    made here would have no threads; TVM reads this where it makes a pool.
    """
    os.environ.setdefault("TVM_BIND_THREADS", "0")
    os.environ.setdefault("TVM_NUM_THREADS", str(environment.num_threads()))


def ready() -> bool:
    """Whether `before_running` was called in this thread."""
    return getattr(_here, "ready", False)


def before_running() -> None:
    """Let the calling thread's pool be as it should, by TVM's API, once; the environment stays as it is.

    A pool that something else made in this thread before keeps its number of threads at most.
    """
    if ready():
        return
    _here.ready = True
    given, binds = os.environ.get("TVM_NUM_THREADS", ""), os.environ.get("TVM_BIND_THREADS", "")
    count = int(given) if given.isdigit() and int(given) > 0 else environment.num_threads()
    set_threads = tvm_ffi.get_global_func("uir.runtime.set_threads", allow_missing=True)
    if set_threads is not None:
        # threads that are bound to CPUs are TVM's
        set_threads(0 if binds == "1" else count)
    if given and binds:
        return
    everywhere = set(range(os.cpu_count() or 1))
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else everywhere
    cpus = [str(cpu) for cpu in sorted(allowed)]
    configure = tvm_ffi.get_global_func("runtime.config_threadpool")
    # The first call makes the pool, with as many threads as CPUs are named; the second says where they run.
    configure(BIG, count, [cpus[i % len(cpus)] for i in range(count)])
    configure(ONE_CORE_EACH if binds == "1" and count <= len(cpus) else ALL_CORES, count, cpus)
