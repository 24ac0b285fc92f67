;; SPDX-License-Identifier: Apache-2.0
;; Copies strided runs inside one block of the arena, at the speed of memory for runs of 16 bytes and more.
(module
  (import "arena" "memory" (memory 1 65536 shared))

  ;; `n` runs of `inner` bytes at constant distance. Inside a run the last word may overlap the one before: every byte is
  ;; written with its own value, and source and destination do not overlap.
  (func $rows
    (param $d i32) (param $s i32) (param $inner i32) (param $n i32) (param $dstep i32) (param $sstep i32)
    (local $p i32) (local $q i32) (local $last i32) (local $wide i32)
    (if (i32.ge_u (local.get $inner) (i32.const 2048)) (then
      (loop $row
        (memory.copy (local.get $d) (local.get $s) (local.get $inner))
        (local.set $d (i32.add (local.get $d) (local.get $dstep)))
        (local.set $s (i32.add (local.get $s) (local.get $sstep)))
        (br_if $row (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (return)))
    (if (i32.ge_u (local.get $inner) (i32.const 16)) (then
      (loop $row
        (local.set $p (local.get $s))
        (local.set $q (local.get $d))
        (local.set $last (i32.sub (i32.add (local.get $s) (local.get $inner)) (i32.const 16)))
        (local.set $wide (i32.add (local.get $s) (i32.and (local.get $inner) (i32.const -64))))
        (block $narrow
          (loop $w
            (br_if $narrow (i32.ge_u (local.get $p) (local.get $wide)))
            (v128.store align=1 (local.get $q) (v128.load align=1 (local.get $p)))
            (v128.store offset=16 align=1 (local.get $q) (v128.load offset=16 align=1 (local.get $p)))
            (v128.store offset=32 align=1 (local.get $q) (v128.load offset=32 align=1 (local.get $p)))
            (v128.store offset=48 align=1 (local.get $q) (v128.load offset=48 align=1 (local.get $p)))
            (local.set $p (i32.add (local.get $p) (i32.const 64)))
            (local.set $q (i32.add (local.get $q) (i32.const 64)))
            (br $w)))
        (block $end
          (loop $v
            (br_if $end (i32.ge_u (local.get $p) (local.get $last)))
            (v128.store align=1 (local.get $q) (v128.load align=1 (local.get $p)))
            (local.set $p (i32.add (local.get $p) (i32.const 16)))
            (local.set $q (i32.add (local.get $q) (i32.const 16)))
            (br $v)))
        (v128.store align=1
          (i32.sub (i32.add (local.get $d) (local.get $inner)) (i32.const 16))
          (v128.load align=1 (local.get $last)))
        (local.set $d (i32.add (local.get $d) (local.get $dstep)))
        (local.set $s (i32.add (local.get $s) (local.get $sstep)))
        (br_if $row (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (return)))
    (if (i32.ge_u (local.get $inner) (i32.const 8)) (then
      (local.set $last (i32.sub (local.get $inner) (i32.const 8)))
      (loop $row
        (i64.store align=1 (local.get $d) (i64.load align=1 (local.get $s)))
        (i64.store align=1
          (i32.add (local.get $d) (local.get $last))
          (i64.load align=1 (i32.add (local.get $s) (local.get $last))))
        (local.set $d (i32.add (local.get $d) (local.get $dstep)))
        (local.set $s (i32.add (local.get $s) (local.get $sstep)))
        (br_if $row (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (return)))
    (if (i32.ge_u (local.get $inner) (i32.const 4)) (then
      (local.set $last (i32.sub (local.get $inner) (i32.const 4)))
      (loop $row
        (i32.store align=1 (local.get $d) (i32.load align=1 (local.get $s)))
        (i32.store align=1
          (i32.add (local.get $d) (local.get $last))
          (i32.load align=1 (i32.add (local.get $s) (local.get $last))))
        (local.set $d (i32.add (local.get $d) (local.get $dstep)))
        (local.set $s (i32.add (local.get $s) (local.get $sstep)))
        (br_if $row (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (return)))
    (if (i32.ge_u (local.get $inner) (i32.const 2)) (then
      (local.set $last (i32.sub (local.get $inner) (i32.const 2)))
      (loop $row
        (i32.store16 align=1 (local.get $d) (i32.load16_u align=1 (local.get $s)))
        (i32.store16 align=1
          (i32.add (local.get $d) (local.get $last))
          (i32.load16_u align=1 (i32.add (local.get $s) (local.get $last))))
        (local.set $d (i32.add (local.get $d) (local.get $dstep)))
        (local.set $s (i32.add (local.get $s) (local.get $sstep)))
        (br_if $row (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (return)))
    (loop $row
      (i32.store8 (local.get $d) (i32.load8_u (local.get $s)))
      (local.set $d (i32.add (local.get $d) (local.get $dstep)))
      (local.set $s (i32.add (local.get $s) (local.get $sstep)))
      (br_if $row (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))

  ;; `count` (at least 1) runs of `inner` (at least 1) bytes of three nested loops, of which the inner two run to `c1` and
  ;; `c2`, from loop position (i0, i1, i2) on. Arithmetic is modulo 2^32; the caller has checked every address.
  (func (export "copyRuns")
    (param $d i32) (param $s i32) (param $inner i32) (param $c1 i32) (param $c2 i32)
    (param $d0 i32) (param $d1 i32) (param $d2 i32) (param $s0 i32) (param $s1 i32) (param $s2 i32)
    (param $i0 i32) (param $i1 i32) (param $i2 i32) (param $count i32)
    (local $n i32)
    (loop $middle
      (local.set $n (i32.sub (local.get $c2) (local.get $i2)))
      (if (i32.gt_u (local.get $n) (local.get $count)) (then (local.set $n (local.get $count))))
      (call $rows
        (i32.add
          (i32.add (local.get $d) (i32.mul (local.get $i0) (local.get $d0)))
          (i32.add (i32.mul (local.get $i1) (local.get $d1)) (i32.mul (local.get $i2) (local.get $d2))))
        (i32.add
          (i32.add (local.get $s) (i32.mul (local.get $i0) (local.get $s0)))
          (i32.add (i32.mul (local.get $i1) (local.get $s1)) (i32.mul (local.get $i2) (local.get $s2))))
        (local.get $inner) (local.get $n) (local.get $d2) (local.get $s2))
      (local.set $count (i32.sub (local.get $count) (local.get $n)))
      (local.set $i2 (i32.const 0))
      (local.set $i1 (i32.add (local.get $i1) (i32.const 1)))
      (if (i32.ge_u (local.get $i1) (local.get $c1)) (then
        (local.set $i1 (i32.const 0))
        (local.set $i0 (i32.add (local.get $i0) (i32.const 1)))))
      (br_if $middle (local.get $count)))))
