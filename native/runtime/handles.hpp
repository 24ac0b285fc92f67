// SPDX-License-Identifier: Apache-2.0
// Numbers for objects: positive, never used twice, so that a stale one is found out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>

#include "runtime/error.hpp"

namespace nccl_ext {

// Below 2^53, so that it is exact as a JavaScript number.
using Handle = std::int64_t;

struct RankState;
struct BufferState;
struct WindowState;
struct StreamState;
struct EventState;
struct GraphState;
struct ModuleState;
struct KernelState;
struct PreparedTransfer;

template <class T>
inline constexpr const char* kKindName = "object";
template <>
inline constexpr const char* kKindName<RankState> = "rank";
template <>
inline constexpr const char* kKindName<BufferState> = "buffer";
template <>
inline constexpr const char* kKindName<WindowState> = "window";
template <>
inline constexpr const char* kKindName<StreamState> = "stream";
template <>
inline constexpr const char* kKindName<EventState> = "event";
template <>
inline constexpr const char* kKindName<GraphState> = "graph";
template <>
inline constexpr const char* kKindName<ModuleState> = "module";
template <>
inline constexpr const char* kKindName<KernelState> = "kernel";
template <>
inline constexpr const char* kKindName<PreparedTransfer> = "transfer";

class Handles {
 public:
  template <class T>
  Handle add(std::shared_ptr<T> object) {
    const Handle handle = next_++;
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  // ERR_INVALID_ARGUMENT: never given out, or of another kind. ERR_DISPOSED: freed.
  template <class T>
  Outcome<std::shared_ptr<T>> find(Handle handle, const char* op) const {
    const std::string kind = kKindName<T>;
    const auto found = objects_.find(handle);
    if (found != objects_.end()) {
      if (const auto* object = std::get_if<std::shared_ptr<T>>(&found->second)) return *object;
      return fail(ErrorCode::kInvalidArgument, op, std::to_string(handle) + " is not the handle of a " + kind);
    }
    if (handle > 0 && handle < next_) return fail(ErrorCode::kDisposed, op, "this " + kind + " was freed");
    return fail(ErrorCode::kInvalidArgument, op, std::to_string(handle) + " is not the handle of a " + kind);
  }

  void remove(Handle handle) { objects_.erase(handle); }

 private:
  using Object =
      std::variant<std::shared_ptr<RankState>, std::shared_ptr<BufferState>, std::shared_ptr<WindowState>,
                   std::shared_ptr<StreamState>, std::shared_ptr<EventState>, std::shared_ptr<GraphState>,
                   std::shared_ptr<ModuleState>, std::shared_ptr<KernelState>, std::shared_ptr<PreparedTransfer>>;
  Handle next_ = 1;
  std::unordered_map<Handle, Object> objects_;
};

}  // namespace nccl_ext
