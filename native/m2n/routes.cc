// SPDX-License-Identifier: Apache-2.0
#include "m2n/routes.hpp"

#include <algorithm>

#include "runtime/wire.hpp"

namespace nccl_ext {
namespace {

using Pair = std::pair<int, int>;

Pair ordered(int one, int other) {
  return {std::min(one, other), std::max(one, other)};
}

std::string reasonOf(const Unreached& unreached) {
  return unreached.help.empty() ? unreached.why : unreached.why + " " + unreached.help;
}

}  // namespace

Bytes encode(const std::vector<Unreached>& unreached) {
  Writer out;
  out.number(static_cast<std::int64_t>(unreached.size()));
  for (const Unreached& one : unreached) out.number(one.peer).number(one.memory ? 1 : 0).block(one.why).block(one.help);
  return out.take();
}

std::vector<Unreached> decodeUnreached(const Bytes& bytes) {
  Reader in(bytes);
  std::vector<Unreached> unreached;
  const std::int64_t count = in.number();
  for (std::int64_t i = 0; i < count && in.good(); i++) {
    Unreached one;
    one.peer = static_cast<std::int32_t>(in.number());
    one.memory = in.number() != 0;
    one.why = in.text();
    one.help = in.text();
    unreached.push_back(std::move(one));
  }
  return unreached;
}

Routes::Routes(const std::vector<PeerPart>& parts, const std::vector<std::vector<Unreached>>& unreached,
               PathChoice choice) {
  std::map<Pair, std::string> memories, controls;  // by who does not reach whom
  for (std::size_t rank = 0; rank < unreached.size(); rank++) {
    for (const Unreached& one : unreached[rank]) {
      const int self = static_cast<int>(rank);
      (one.memory ? memories : controls).try_emplace({self, one.peer}, reasonOf(one));
      if (!one.memory) apart_.insert(ordered(self, one.peer));
    }
  }
  for (std::size_t rank = 0; rank < parts.size(); rank++) {
    const int sender = static_cast<int>(rank);
    for (const auto& receivers : parts[rank].receivers) {
      for (const std::int32_t receiver : receivers) {
        if (choice == PathChoice::kSendrecv) {
          sent_.try_emplace({sender, receiver}, "The path 'sendrecv' was asked for.");
          continue;
        }
        for (const auto* reasons : {&memories, &controls}) {
          if (const auto found = reasons->find({sender, receiver}); found != reasons->end())
            sent_.try_emplace({sender, receiver}, found->second);
        }
        if (const auto found = controls.find({receiver, sender}); found != controls.end())
          sent_.try_emplace({sender, receiver}, found->second);
      }
    }
  }
}

std::string Routes::why(int sender, int receiver) const {
  const auto found = sent_.find({sender, receiver});
  return found == sent_.end() ? "" : found->second;
}

bool Routes::meet(int one, int other) const {
  return one == other || apart_.count(ordered(one, other)) == 0;
}

}  // namespace nccl_ext
