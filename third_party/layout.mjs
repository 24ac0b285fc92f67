// SPDX-License-Identifier: Apache-2.0
// Lays unpacked archives out as the toolkit roots that nvcc and CMake expect.
//
// Wheels carry no symbolic links and no execute bits, and CMake's FindCUDAToolkit wants an unversioned libcudart.so even
// when it links statically, so those are made here.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/** By component: makes the root `root` from the archives `files`, in the order of the pins. */
export const layouts = { 'nccl-cu13': nccl, 'nccl-cu12': nccl, cuda13, cuda12, 'clang-format': clangFormat };

/** include/ and lib/libnccl.so.2; doca_gpunetio becomes an include root, as NCCL's device headers ask for. */
function nccl([wheel], root) {
  unzip(wheel, root);
  moveUp(join(root, 'nvidia', 'nccl'), root);
  rmSync(join(root, 'nvidia'), { recursive: true });
  symlinkSync('nccl_device/gin/gdaki/doca_gpunetio', join(root, 'include', 'doca_gpunetio'));
  symlinkSync('libnccl.so.2', join(root, 'lib', 'libnccl.so'));
}

function cuda13(wheels, root) {
  for (const wheel of wheels) unzip(wheel, root);
  moveUp(join(root, 'nvidia', 'cu13'), root);
  rmSync(join(root, 'nvidia'), { recursive: true });
  for (const folder of ['bin', 'nvvm/bin']) {
    for (const file of readdirSync(join(root, folder), { withFileTypes: true })) {
      if (file.isFile()) chmodSync(join(root, folder, file.name), 0o755);
    }
  }
  finishRoot(root, 'libcudart.so.13');
}

function clangFormat([wheel], root) {
  unzip(wheel, root);
  moveUp(join(root, 'clang_format', 'data'), root);
  rmSync(join(root, 'clang_format'), { recursive: true });
  chmodSync(join(root, 'bin', 'clang-format'), 0o755);
}

/** Debian spreads the toolkit over the system's folders; the part that compiles is a fifth of it. */
function cuda12([toolkit, dev, cudart, nvvm, cccl], root) {
  const system = join(root, 'unpacked');
  for (const deb of [toolkit, cudart, nvvm]) must('dpkg', ['-x', deb, system]);
  const wanted = [
    './usr/include/*',
    './usr/lib/x86_64-linux-gnu/libcudart_static.a',
    './usr/lib/x86_64-linux-gnu/libcudadevrt.a',
  ];
  must('bash', [
    ...[
      '-c',
      'set -o pipefail; deb=$1 to=$2; shift 2; dpkg --fsys-tarfile "$deb" | tar -x -C "$to" --wildcards "$@"',
    ],
    ...['bash', dev, system, ...wanted],
  ]);
  const usr = join(system, 'usr');
  for (const folder of ['bin', 'nvvm/bin', 'nvvm/libdevice', 'lib', 'include'])
    mkdirSync(join(root, folder), { recursive: true });
  for (const tool of ['cudafe++', 'ptxas', 'fatbinary', 'nvlink', 'bin2c', 'cuobjdump', 'nvdisasm']) {
    renameSync(join(usr, 'bin', tool), join(root, 'bin', tool));
  }
  const own = join(usr, 'lib', 'nvidia-cuda-toolkit');
  for (const part of ['nvcc', 'crt']) renameSync(join(own, 'bin', part), join(root, 'bin', part));
  renameSync(join(own, 'bin', 'cicc'), join(root, 'nvvm', 'bin', 'cicc'));
  renameSync(join(own, 'libdevice', 'libdevice.10.bc'), join(root, 'nvvm', 'libdevice', 'libdevice.10.bc'));
  moveUp(join(usr, 'include'), join(root, 'include'));
  moveUp(join(usr, 'lib', 'x86_64-linux-gnu'), join(root, 'lib'));
  rmSync(system, { recursive: true });

  const wheel = join(root, 'wheel');
  unzip(cccl, wheel);
  cpSync(join(wheel, 'nvidia', 'cu13', 'include', 'cccl'), join(root, 'include', 'cccl'), {
    recursive: true,
  });
  rmSync(wheel, { recursive: true });
  meetNewerGlibc(join(root, 'include', 'crt', 'math_functions.h'));
  writeFileSync(
    join(root, 'bin', 'nvcc.profile'),
    [
      'TOP = $(_HERE_)/..',
      'CICC_PATH = $(TOP)/nvvm/bin',
      'NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice',
      'LD_LIBRARY_PATH += $(TOP)/lib:',
      'PATH += $(CICC_PATH):$(_HERE_):',
      'INCLUDES += "-I$(TOP)/include" $(_SPACE_)',
      'LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib"',
      '',
    ].join('\n'),
  );
  finishRoot(root, 'libcudart.so.12');
}

/** glibc 2.41 (Debian 13) declares these functions too, and they may not differ from CUDA 12.4's in what they throw. */
function meetNewerGlibc(header) {
  const declared = /(\b(?:sinpi|cospi)f?\((?:double|float) x\));/g;
  writeFileSync(header, readFileSync(header, 'utf8').replace(declared, '$1 noexcept(true);'));
}

/** The names by which CMake finds a toolkit's parts. */
function finishRoot(root, cudart) {
  if (!existsSync(join(root, 'lib', 'libcudart.so'))) symlinkSync(cudart, join(root, 'lib', 'libcudart.so'));
  symlinkSync('lib', join(root, 'lib64'));
  const target = join(root, 'targets', 'x86_64-linux');
  mkdirSync(target, { recursive: true });
  for (const part of ['include', 'lib']) symlinkSync(`../../${part}`, join(target, part));
}

function moveUp(from, to) {
  for (const name of readdirSync(from)) renameSync(join(from, name), join(to, name));
}

/** Wheels are zip archives; Python, which pip needs anyway, unpacks them. */
function unzip(wheel, folder) {
  must('python3', ['-m', 'zipfile', '-e', wheel, folder]);
}

function must(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (error !== undefined) throw new Error(`${command} cannot be run: ${error.message}`);
  if (status !== 0) throw new Error(`${command} failed with exit code ${status}`);
}
