# SPDX-License-Identifier: Apache-2.0
"""The PyTorch side of share.mjs: reads one JSON request per line from stdin, answers with one per line on stdout.

A request is {"call": name, ...}; an answer is {"ok": true, ...} or {"ok": false, "error": text}. Every call synchronizes the GPU
before it answers: nothing orders the streams of two processes but such a message.
"""

import base64
import json
import os
import sys

import torch

from cuda_memory import CudaArray, OpenedMemory, export_descriptors

DEVICE = 0
# What `_share_cuda_` puts before the handle of the driver: a version and the kind of segment.
PREFIX_BYTES = 2
CUDA_MALLOC_SEGMENT = b"c"

state = {}


def pattern(elements, seed):
    return torch.arange(elements, dtype=torch.int32, device=f"cuda:{DEVICE}") * 3 + seed


def hello():
    return {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(DEVICE)}


def share(elements, seed):
    """Makes a tensor and says how to open it. The tensor is kept until `drop`."""
    tensor = pattern(elements, seed)
    torch.cuda.synchronize()
    state["tensor"] = tensor
    storage = tensor.untyped_storage()
    first = tensor.storage_offset() * tensor.element_size()
    if "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""):
        shares = export_descriptors(storage.data_ptr() + first, tensor.nbytes)
        state["descriptors"] = [one["fd"] for one in shares]
        return {"shares": shares}
    _, handle, _, offset, counter, counter_offset, _, _ = storage._share_cuda_()
    # PyTorch counts on a receiver that lowers this counter; ours is no PyTorch process, so `drop` does it.
    state["counter"] = (counter, counter_offset)
    kind = handle[1:PREFIX_BYTES]
    if kind != CUDA_MALLOC_SEGMENT:
        raise RuntimeError(f"a segment of kind {kind!r}, not cudaMalloc memory")
    text = base64.b64encode(handle[PREFIX_BYTES:]).decode()
    return {"shares": [{"kind": "ipc", "handle": text, "byteOffset": offset + first, "bytes": tensor.nbytes}]}


def check(seed):
    """Whether the tensor has what the other side wrote."""
    return {"wrong": differences(state["tensor"], seed)}


def drop():
    """Frees the tensor; the other side has closed it."""
    for descriptor in state.pop("descriptors", []):
        os.close(descriptor)
    if "counter" in state:
        torch.UntypedStorage._release_ipc_counter_cuda(*state.pop("counter"))
    del state["tensor"]
    return {}


def open_and_change(share, seed, next_seed):
    """Views memory of the other side as a tensor, checks it, writes into it, closes it."""
    memory = OpenedMemory(share, DEVICE)
    try:
        array = CudaArray(memory.address, [memory.bytes // 4], "<i4")
        tensor = torch.as_tensor(array, device=f"cuda:{DEVICE}")
        if tensor.data_ptr() != memory.address:
            raise RuntimeError("PyTorch copied the memory instead of viewing it")
        wrong = differences(tensor, seed)
        tensor.copy_(pattern(tensor.numel(), next_seed))
        torch.cuda.synchronize()
        del tensor
    finally:
        memory.close()
    return {"wrong": wrong}


def differences(tensor, seed):
    return int((tensor != pattern(tensor.numel(), seed)).sum().item())


CALLS = {"hello": hello, "share": share, "check": check, "drop": drop, "open_and_change": open_and_change}


def answer(request):
    name = request.pop("call")
    try:
        return {"ok": True, **CALLS[name](**request)}
    except OSError as error:
        return {"ok": False, "error": str(error), "errno": error.errno}
    except Exception as error:
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}


torch.cuda.set_device(DEVICE)
torch.cuda.init()
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
