# SPDX-License-Identifier: Apache-2.0
# Every source by name, so that a file that is not listed is not built.
set(NCCL_SOURCES nccl/comm.cc nccl/loader.cc nccl/search.cc)
set(M2N_SOURCES
  m2n/bundle_moves.cc
  m2n/move_shape.cc
  m2n/move_table.cc
  m2n/program_image.cc
  m2n/tile_bundles.cc)
set(RUNTIME_SOURCES
  runtime/buffers.cc
  runtime/copies.cc
  runtime/cuda_error.cc
  runtime/descriptor.cc
  runtime/device_memory.cc
  runtime/driver.cc
  runtime/driver_api.cc
  runtime/events.cc
  runtime/export_share.cc
  runtime/foreign_memory.cc
  runtime/foreign_streams.cc
  runtime/graphs.cc
  runtime/identity.cc
  runtime/ipc_memory.cc
  runtime/kernel_launch.cc
  runtime/kernels.cc
  runtime/local_meeting.cc
  runtime/memory_facts.cc
  runtime/module_image.cc
  runtime/module_state.cc
  runtime/open_rank.cc
  runtime/open_share.cc
  runtime/peer_table.cc
  runtime/physical_memory.cc
  runtime/pinned.cc
  runtime/poller.cc
  runtime/probe_devices.cc
  runtime/process.cc
  runtime/ranks.cc
  runtime/socket.cc
  runtime/split.cc
  runtime/split_rank.cc
  runtime/state.cc
  runtime/status_text.cc
  runtime/streams.cc
  runtime/tcp_frames.cc
  runtime/tcp_hub.cc
  runtime/tcp_meeting.cc
  runtime/verdict.cc
  runtime/window_memory.cc
  runtime/windows.cc
  runtime/wire.cc
  runtime/worker.cc
  runtime/worlds.cc)
set(KERNEL_SOURCES m2n/transfer.cu runtime/barrier.cu runtime/moves.cu)
set(NODE_SOURCES node/addon.cc node/bind_foreign.cc node/bind_kernels.cc node/bind_runtime.cc node/convert.cc node/session.cc)
