// SPDX-License-Identifier: Apache-2.0
// A TCP connection that carries frames (length, bytes) with deadlines.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/meeting.hpp"

namespace nccl_ext {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;

  // Bound to `address` alone. ERR_LAUNCHER says why it cannot be.
  static Outcome<Socket> listenOn(const std::string& address, int port);
  // Tries until `deadline`; the text says why it could not. ERR_TIMEOUT.
  static Outcome<Socket> connectTo(const std::string& address, int port, Clock::time_point deadline);

  // The next connection, or none within `patience`.
  std::optional<Socket> accept(std::chrono::milliseconds patience) const;
  // False when the connection ended or `deadline` passed.
  bool send(const Bytes& frame, Clock::time_point deadline);
  // None when the connection ended, `deadline` passed, or the frame is longer than `most` bytes.
  std::optional<Bytes> receive(Clock::time_point deadline, std::size_t most);
  // Ends both directions; calls that wait on other threads return.
  void shutdown();
  // Ends receiving alone: a last frame may still be sent.
  void shutdownReading();
  bool isOpen() const { return descriptor_ >= 0; }

 private:
  bool ready(short events, Clock::time_point deadline) const;
  bool receiveAll(void* data, std::size_t bytes, Clock::time_point deadline);
  bool sendAll(const void* data, std::size_t bytes, Clock::time_point deadline);

  int descriptor_ = -1;
};

}  // namespace nccl_ext
