// SPDX-License-Identifier: Apache-2.0
#include "runtime/module_image.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace nccl_ext {
namespace {

constexpr const char* kOp = "loadModule";
// Not in every elf.h.
constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;

struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t headerBytes;
  std::uint64_t bodyBytes;
};

Failure broken(const std::string& what) {
  return fail(ErrorCode::kModule, kOp, what)
      .helped("Pass the bytes of a file that `nvcc -cubin` or `nvcc -ptx` wrote, read as a whole.");
}

Failure cutOff(const char* kind, std::uint64_t needed, std::size_t bytes) {
  return broken(std::string("this ") + kind + " is cut off: it needs " + std::to_string(needed) + " bytes and has " +
                std::to_string(bytes))
      .expecting(static_cast<std::int64_t>(needed), static_cast<std::int64_t>(bytes));
}

template <class T>
T read(const Bytes& image, std::size_t offset) {
  T value;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

// Where `count` entries of `bytes` from `offset` on end; the largest number when that does not fit into 64 bits.
std::uint64_t endOf(std::uint64_t offset, std::uint64_t count, std::uint64_t bytes) {
  std::uint64_t size = 0, end = 0;
  const bool overflows = __builtin_mul_overflow(count, bytes, &size) || __builtin_add_overflow(offset, size, &end);
  return overflows ? ~std::uint64_t{0} : end;
}

Status checkCubin(const Bytes& image) {
  if (image.size() < sizeof(Elf64_Ehdr)) return cutOff("cubin", sizeof(Elf64_Ehdr), image.size());
  const auto header = read<Elf64_Ehdr>(image, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachineCuda)
    return broken("this ELF file is no cubin: it holds code for another machine than a GPU");
  std::uint64_t needed = std::max(endOf(header.e_shoff, header.e_shnum, header.e_shentsize),
                                  endOf(header.e_phoff, header.e_phnum, header.e_phentsize));
  if (needed > image.size()) return cutOff("cubin", needed, image.size());
  if (header.e_shnum > 0 && header.e_shentsize < sizeof(Elf64_Shdr))
    return broken("this cubin's section table is broken");
  for (std::size_t i = 0; i < header.e_shnum; i++) {
    const auto section = read<Elf64_Shdr>(image, header.e_shoff + i * header.e_shentsize);
    if (section.sh_type != SHT_NOBITS) needed = std::max(needed, endOf(section.sh_offset, 1, section.sh_size));
  }
  return needed > image.size() ? Status(cutOff("cubin", needed, image.size())) : ok();
}

Status checkFatbin(const Bytes& image) {
  if (image.size() < sizeof(FatbinHeader)) return cutOff("fat binary", sizeof(FatbinHeader), image.size());
  const auto header = read<FatbinHeader>(image, 0);
  const std::uint64_t needed = endOf(header.headerBytes, 1, header.bodyBytes);
  return needed > image.size() ? Status(cutOff("fat binary", needed, image.size())) : ok();
}

bool isPtx(const Bytes& image) {
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  return text.find('\0') >= text.find_last_not_of('\0') && text.find(".version") != std::string_view::npos;
}

}  // namespace

Status prepareImage(Bytes& image) {
  if (image.empty() || image.size() > kMaxImageBytes) {
    return fail(ErrorCode::kInvalidArgument, kOp,
                "a module's image has 1 to " + std::to_string(kMaxImageBytes) + " bytes; this one has " +
                    std::to_string(image.size()))
        .expecting(static_cast<std::int64_t>(kMaxImageBytes), static_cast<std::int64_t>(image.size()));
  }
  if (image.size() >= SELFMAG && std::memcmp(image.data(), ELFMAG, SELFMAG) == 0) return checkCubin(image);
  if (image.size() >= sizeof kFatbinMagic && read<std::uint32_t>(image, 0) == kFatbinMagic) return checkFatbin(image);
  if (!isPtx(image)) return broken("the image is neither a cubin nor PTX");
  image.push_back(0);
  return ok();
}

}  // namespace nccl_ext
