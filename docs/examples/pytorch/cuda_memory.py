# SPDX-License-Identifier: Apache-2.0
"""GPU memory between processes, by the CUDA driver through ctypes: PyTorch needs no other package for it.

A share is a JSON object, `MemoryShare` of @nccl-ext/core: kind "ipc" (cudaMalloc memory, a 64-byte CUDA IPC handle) or "fd" (a
VMM allocation, a POSIX file descriptor). The caller has made the GPU's context current; any use of torch.cuda does.
"""

import base64
import ctypes
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_long, c_size_t, c_uint, c_uint64, c_void_p

IPC_HANDLE_BYTES = 64
IPC_LAZY_ENABLE_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
POSIX_FILE_DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
LOCATION_DEVICE = 1  # CU_MEM_LOCATION_TYPE_DEVICE
READ_WRITE = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
SYS_PIDFD_GETFD = 438  # on every architecture of Linux


class IpcHandle(ctypes.Structure):
    """CUipcMemHandle: passed by value."""

    _fields_ = [("reserved", c_char * IPC_HANDLE_BYTES)]


class AccessDescription(ctypes.Structure):
    """CUmemAccessDesc, whose location is {type, id}."""

    _fields_ = [("location_type", c_int), ("location_id", c_int), ("flags", c_int)]


# Names as cuda.h maps them (_v2), with the types of its declarations. CUdeviceptr and handles of allocations are 64-bit integers.
_SIGNATURES = {
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuMemGetAddressRange_v2": [POINTER(c_uint64), POINTER(c_size_t), c_uint64],
    "cuIpcOpenMemHandle_v2": [POINTER(c_uint64), IpcHandle, c_uint],
    "cuIpcCloseMemHandle": [c_uint64],
    "cuMemRetainAllocationHandle": [POINTER(c_uint64), c_void_p],
    "cuMemExportToShareableHandle": [c_void_p, c_uint64, c_int, c_uint64],
    "cuMemImportFromShareableHandle": [POINTER(c_uint64), c_void_p, c_int],
    "cuMemRelease": [c_uint64],
    "cuMemAddressReserve": [POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_uint64],
    "cuMemAddressFree": [c_uint64, c_size_t],
    "cuMemMap": [c_uint64, c_size_t, c_size_t, c_uint64, c_uint64],
    "cuMemUnmap": [c_uint64, c_size_t],
    "cuMemSetAccess": [c_uint64, c_size_t, POINTER(AccessDescription), c_size_t],
}

_driver = ctypes.CDLL("libcuda.so.1")
for _name, _types in _SIGNATURES.items():
    _function = getattr(_driver, _name)
    _function.argtypes = _types
    _function.restype = c_int

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = c_long


def call(name, *arguments):
    """Calls the driver; RuntimeError with the error's name when it fails."""
    result = getattr(_driver, name)(*arguments)
    if result != 0:
        text = c_char_p()
        _driver.cuGetErrorName(result, byref(text))
        raise RuntimeError(f"{name}: {(text.value or b'error ' + str(result).encode()).decode()}")


def allocation_of(address):
    """Start and bytes of the allocation that holds `address`."""
    base, size = c_uint64(), c_size_t()
    call("cuMemGetAddressRange_v2", byref(base), byref(size), address)
    return base.value, size.value


def export_descriptors(address, size):
    """Shares for VMM memory, one per allocation: with expandable segments a tensor may lie in several. The caller closes each
    `fd` when the importer has opened it."""
    shares = []
    end = address + size
    while address < end:
        base, allocation_bytes = allocation_of(address)
        handle, descriptor = c_uint64(), c_int(-1)
        call("cuMemRetainAllocationHandle", byref(handle), address)
        try:
            call("cuMemExportToShareableHandle", byref(descriptor), handle, POSIX_FILE_DESCRIPTOR, 0)
        finally:
            call("cuMemRelease", handle)
        part = min(end, base + allocation_bytes) - address
        shares.append(
            {
                "kind": "fd",
                "fd": descriptor.value,
                "processId": os.getpid(),
                "allocationBytes": allocation_bytes,
                "byteOffset": address - base,
                "bytes": part,
            }
        )
        address += part
    return shares


class OpenedMemory:
    """Memory of another process. `close()` before the exporter frees it, and after all work here that uses it."""

    def __init__(self, share, device):
        self._mapped = 0  # bytes of our own mapping; 0 for an IPC handle
        base = _open_ipc(share) if share["kind"] == "ipc" else self._map(share, device)
        self._base = base
        self.address = base + share["byteOffset"]
        self.bytes = share["bytes"]

    def _map(self, share, device):
        size = share["allocationBytes"]
        descriptor = _own_descriptor(share)
        handle = c_uint64()
        try:
            # The driver takes the descriptor's number in place of a pointer.
            call("cuMemImportFromShareableHandle", byref(handle), c_void_p(descriptor), POSIX_FILE_DESCRIPTOR)
        finally:
            os.close(descriptor)
        try:
            base = c_uint64()
            call("cuMemAddressReserve", byref(base), size, 0, 0, 0)
            call("cuMemMap", base, size, 0, handle, 0)
        finally:
            # The mapping keeps the allocation.
            call("cuMemRelease", handle)
        call("cuMemSetAccess", base, size, byref(AccessDescription(LOCATION_DEVICE, device, READ_WRITE)), 1)
        self._mapped = size
        return base.value

    def close(self):
        if self._mapped == 0:
            call("cuIpcCloseMemHandle", self._base)
        else:
            call("cuMemUnmap", self._base, self._mapped)
            call("cuMemAddressFree", self._base, self._mapped)


def _open_ipc(share):
    handle = IpcHandle.from_buffer_copy(base64.b64decode(share["handle"]))
    base = c_uint64()
    call("cuIpcOpenMemHandle_v2", byref(base), handle, IPC_LAZY_ENABLE_PEER_ACCESS)
    return base.value


def _own_descriptor(share):
    """The descriptor as one of this process: our own already, or a copy of the exporter's."""
    process = share.get("processId")
    if process is None:
        return share["fd"]
    pidfd = os.pidfd_open(process)
    try:
        copy = _libc.syscall(c_long(SYS_PIDFD_GETFD), c_int(pidfd), c_int(share["fd"]), c_uint(0))
    finally:
        os.close(pidfd)
    if copy < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"pidfd_getfd: {os.strerror(error)}")
    return copy


class CudaArray:
    """Lets `torch.as_tensor` view memory where it lies (__cuda_array_interface__). Types that it has no name for, such as
    bfloat16, are viewed as integers first: `torch.as_tensor(...).view(torch.bfloat16)`."""

    def __init__(self, address, shape, typestr):
        self.__cuda_array_interface__ = {
            "data": (address, False),  # not read-only
            "shape": tuple(shape),
            "typestr": typestr,
            "strides": None,
            "version": 3,
        }
