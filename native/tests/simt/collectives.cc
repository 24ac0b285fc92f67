// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/collectives.hpp"

#include <algorithm>
#include <utility>

#include "tests/simt/machine.hpp"

namespace nccl_ext::simt {
namespace {

bool isSame(const Meeting& one, const Meeting& other) {
  return one.mask == other.mask && one.site.line() == other.site.line() && std::strcmp(one.what, other.what) == 0 &&
         std::strcmp(one.site.file_name(), other.site.file_name()) == 0;
}

std::string textOf(const Meeting& meeting) {
  return std::string(meeting.what) + " of line " + std::to_string(meeting.site.line());
}

[[noreturn]] void diverge(const Meeting& mine, const Meeting& others) {
  machine().fail("divergence: it comes to " + textOf(mine) + " while other lanes are at " + textOf(others));
}

// Before the lane waits: whether those that it waits for may come.
void check(const Warp& warp, const Meeting& mine) {
  if ((mine.mask >> ownLane() & 1) == 0) machine().fail(textOf(mine) + ": its mask lacks this lane");
  if ((mine.mask & ~warp.present) != 0) machine().fail(textOf(mine) + ": its mask names lanes that have ended");
  if ((mine.mask & warp.atCta) != 0)
    machine().fail(textOf(mine) + ": its mask names lanes that wait at the CTA's barrier");
  for (const OpenMeeting& open : warp.open) {
    if ((open.meeting.mask & mine.mask) != 0 && !isSame(open.meeting, mine)) diverge(mine, open.meeting);
  }
}

OpenMeeting& join(Warp& warp, const Meeting& mine) {
  for (OpenMeeting& open : warp.open) {
    if (open.meeting.mask == mine.mask) return open;
  }
  return warp.open.emplace_back(OpenMeeting{mine, 0});
}

void endMeeting(Warp& warp, std::uint32_t mask) {
  std::array<std::uint64_t, 32> brought{};
  for (std::uint32_t lane = 0; lane < 32; lane++) {
    if ((mask >> lane & 1) != 0) brought[lane] = warp.lanes[lane]->meeting.brought;
  }
  for (std::uint32_t lane = 0; lane < 32; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    warp.lanes[lane]->heard = brought;
    machine().wake(*warp.lanes[lane]);
  }
  for (OpenMeeting& open : warp.open) {
    if (open.meeting.mask != mask) continue;
    std::swap(open, warp.open.back());
    warp.open.pop_back();
    break;
  }
}

}  // namespace

const std::array<std::uint64_t, 32>& meet(const char* what, std::uint32_t mask, Site site, std::uint64_t brings) {
  Thread& self = *machine().current();
  Warp& warp = *self.warp;
  const Meeting mine{what, mask, site, brings};
  check(warp, mine);
  machine().block(mine);
  OpenMeeting& open = join(warp, mine);
  open.came |= std::uint32_t{1} << self.lane;
  if (open.came != mask) {
    machine().yield();
    return self.heard;
  }
  endMeeting(warp, mask);
  machine().moved();
  // Sometimes the last one to come is not the first one to go on.
  if (machine().pick(2) == 0) machine().yield();
  return self.heard;
}

const std::array<std::uint64_t, 32>& meetCta(const char* what, Site site, std::uint64_t brings) {
  Thread& self = *machine().current();
  Cta& cta = *self.cta;
  const Meeting mine{what, 0, site, brings};
  if (cta.ended > 0) machine().fail(textOf(mine) + ": threads of the CTA have ended");
  for (const OpenMeeting& open : self.warp->open) {
    if ((open.meeting.mask >> self.lane & 1) != 0) diverge(mine, open.meeting);
  }
  if (cta.waiting == 0)
    cta.meeting = mine;
  else if (!isSame(cta.meeting, mine))
    diverge(mine, cta.meeting);
  cta.least = cta.waiting == 0 ? brings : std::min(cta.least, brings);
  cta.greatest = cta.waiting == 0 ? brings : std::max(cta.greatest, brings);
  machine().block(mine);
  self.warp->atCta |= std::uint32_t{1} << self.lane;
  if (++cta.waiting == cta.threads) {
    cta.waiting = 0;
    for (Warp& warp : cta.warps) {
      warp.atCta = 0;
      for (const auto& lane : warp.lanes) {
        lane->heard[0] = cta.least;
        lane->heard[1] = cta.greatest;
        machine().wake(*lane);
      }
    }
    machine().moved();
  }
  machine().yield();
  return self.heard;
}

std::uint64_t shuffle(const char* what, std::uint32_t mask, std::uint32_t from, Site site, std::uint64_t brings) {
  const auto& heard = meet(what, mask, site, brings);
  if ((mask >> from & 1) == 0) machine().fail("a shuffle from a lane that is not in the mask");
  return heard[from];
}

std::uint32_t ownLane() {
  return machine().current()->lane;
}

bool elect(Site site) {
  meet("elect.sync", 0xffff'ffff, site, 0);
  const Thread& self = *machine().current();
  return self.warp->elected == self.lane;
}

}  // namespace nccl_ext::simt
