;; SPDX-License-Identifier: Apache-2.0
;; Converts strided runs of floats between dtypes by the rules of dtype/float-format.ts, bit for bit: one rounding to nearest
;; even straight from the source, canonical NaNs, saturating fp8. Elements pass as f32 bits, a tile at a time.
;; Dtypes go by their codes: f64 0, f32 1, f16 2, bf16 3, f8e4m3 4, f8e5m2 5.
(module
  (import "arena" "memory" (memory 1 65536 shared))

  ;; Stores the lanes of $v that are elements: all four, or the first $n.
  (func $put (param $q i32) (param $v v128) (param $n i32)
    (if (i32.ge_u (local.get $n) (i32.const 4)) (then
      (v128.store align=1 (local.get $q) (local.get $v)) (return)))
    (v128.store32_lane align=1 0 (local.get $q) (local.get $v))
    (if (i32.ge_u (local.get $n) (i32.const 2)) (then
      (v128.store32_lane offset=4 align=1 1 (local.get $q) (local.get $v))))
    (if (i32.ge_u (local.get $n) (i32.const 3)) (then
      (v128.store32_lane offset=8 align=1 2 (local.get $q) (local.get $v)))))

  ;; Patterns of $width bytes to f32 bits. Exact: a normal value moves its fields, a subnormal one is its integer times the
  ;; unit in the last place. Reads up to 15 bytes beyond the run, which lie in the same memory.
  (func $widen
    (param $s i32) (param $t i32) (param $n i32) (param $width i32)
    (param $shift i32) (param $rebias i32) (param $normal i32) (param $ulp f32)
    (param $largest i32) (param $infinity i32) (param $signShift i32)
    (local $p v128) (local $m v128) (local $v v128) (local $sign v128)
    (loop $next
      (if (i32.eq (local.get $width) (i32.const 1))
        (then (local.set $p (i32x4.extend_low_i16x8_u (i16x8.extend_low_i8x16_u
          (v128.load32_zero align=1 (local.get $s))))))
        (else (local.set $p (i32x4.extend_low_i16x8_u (v128.load64_zero align=1 (local.get $s))))))
      (local.set $sign (v128.and
        (i32x4.shl (local.get $p) (local.get $signShift)) (i32x4.splat (i32.const 0x80000000))))
      (local.set $m (v128.and (local.get $p)
        (i32x4.splat (i32.shr_u (i32.const 0x7fffffff) (local.get $signShift)))))
      (local.set $v (v128.bitselect
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $m)) (f32x4.splat (local.get $ulp)))
        (i32x4.add (i32x4.shl (local.get $m) (local.get $shift)) (i32x4.splat (local.get $rebias)))
        (i32x4.lt_s (local.get $m) (i32x4.splat (local.get $normal)))))
      (local.set $v (v128.or (local.get $v) (local.get $sign)))
      (local.set $v (v128.bitselect
        (v128.bitselect
          (v128.or (local.get $sign) (i32x4.splat (i32.const 0x7f800000)))
          (i32x4.splat (i32.const 0x7fffffff))
          (i32x4.eq (local.get $m) (i32x4.splat (local.get $infinity))))
        (local.get $v)
        (i32x4.gt_s (local.get $m) (i32x4.splat (local.get $largest)))))
      (call $put (local.get $t) (local.get $v) (local.get $n))
      (local.set $s (i32.add (local.get $s) (i32.shl (local.get $width) (i32.const 2))))
      (local.set $t (i32.add (local.get $t) (i32.const 16)))
      (br_if $next (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const 4))) (i32.const 0)))))

  ;; f32 bits to patterns of $width bytes. Normal results round in integers; for subnormal ones the addition of $magic,
  ;; whose unit in the last place is theirs, rounds in the adder (F. Giesen, float_to_half_fast3_rtne).
  (func $narrow
    (param $t i32) (param $d i32) (param $n i32) (param $width i32)
    (param $shift i32) (param $rebias i32) (param $normal i32) (param $magic i32)
    (param $overflow i32) (param $nan i32) (param $signShift i32)
    (local $u v128) (local $a v128) (local $r v128) (local $i i32)
    (loop $next
      (local.set $u (v128.load align=1 (local.get $t)))
      (local.set $a (v128.and (local.get $u) (i32x4.splat (i32.const 0x7fffffff))))
      (local.set $r (i32x4.shr_u
        (i32x4.add
          (i32x4.add (local.get $a) (v128.and
            (i32x4.shr_u (local.get $a) (local.get $shift)) (i32x4.splat (i32.const 1))))
          (i32x4.splat (i32.sub
            (i32.sub (i32.shl (i32.const 1) (i32.sub (local.get $shift) (i32.const 1))) (i32.const 1))
            (local.get $rebias))))
        (local.get $shift)))
      (local.set $r (v128.bitselect
        (i32x4.sub
          (f32x4.add (local.get $a) (i32x4.splat (local.get $magic)))
          (i32x4.splat (local.get $magic)))
        (local.get $r)
        (i32x4.lt_s (local.get $a) (i32x4.splat (local.get $normal)))))
      (local.set $r (v128.or
        (i32x4.min_s (local.get $r) (i32x4.splat (local.get $overflow)))
        (i32x4.shl (i32x4.shr_u (local.get $u) (i32.const 31)) (i32.sub (i32.const 31) (local.get $signShift)))))
      (local.set $r (v128.bitselect
        (i32x4.splat (local.get $nan)) (local.get $r)
        (i32x4.gt_s (local.get $a) (i32x4.splat (i32.const 0x7f800000)))))
      (if (i32.eq (local.get $width) (i32.const 1))
        (then (local.set $r (i8x16.shuffle 0 4 8 12 0 4 8 12 0 4 8 12 0 4 8 12 (local.get $r) (local.get $r))))
        (else (local.set $r (i8x16.shuffle 0 1 4 5 8 9 12 13 0 1 4 5 8 9 12 13 (local.get $r) (local.get $r)))))
      (if (i32.ge_s (local.get $n) (i32.const 4))
        (then
          (if (i32.eq (local.get $width) (i32.const 1))
            (then (v128.store32_lane align=1 0 (local.get $d) (local.get $r)))
            (else (v128.store64_lane align=1 0 (local.get $d) (local.get $r)))))
        (else
          (local.set $i (i32.mul (local.get $n) (local.get $width)))
          (if (i32.eq (local.get $width) (i32.const 1))
            (then (loop $byte
              (i32.store8 (local.get $d) (i8x16.extract_lane_u 0 (local.get $r)))
              (local.set $r (i8x16.shuffle 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 0 (local.get $r) (local.get $r)))
              (local.set $d (i32.add (local.get $d) (i32.const 1)))
              (br_if $byte (local.tee $i (i32.sub (local.get $i) (i32.const 1))))))
            (else (loop $pair
              (v128.store16_lane align=1 0 (local.get $d) (local.get $r))
              (local.set $r (i8x16.shuffle 2 3 4 5 6 7 8 9 10 11 12 13 14 15 0 1 (local.get $r) (local.get $r)))
              (local.set $d (i32.add (local.get $d) (i32.const 2)))
              (br_if $pair (local.tee $i (i32.sub (local.get $i) (i32.const 2)))))))))
      (local.set $t (i32.add (local.get $t) (i32.const 16)))
      (local.set $d (i32.add (local.get $d) (i32.shl (local.get $width) (i32.const 2))))
      (br_if $next (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const 4))) (i32.const 0)))))

  ;; f64 to f32 bits, to nearest even, or to odd when a narrower type follows: the neighbour whose last bit is set, which
  ;; rounds on as the f64 value itself would.
  (func $fromDouble (param $s i32) (param $t i32) (param $n i32) (param $odd i32)
    (local $x f64) (local $f f32) (local $bits i32)
    (loop $next
      (local.set $x (f64.load align=1 (local.get $s)))
      (local.set $f (f32.demote_f64 (local.get $x)))
      (local.set $bits (i32.reinterpret_f32 (local.get $f)))
      (if (f64.ne (local.get $x) (local.get $x))
        (then (local.set $bits (i32.const 0x7fffffff)))
        (else
          (if (i32.and (local.get $odd) (i32.eqz (i32.and (local.get $bits) (i32.const 1)))) (then
            (if (f64.ne (f64.promote_f32 (local.get $f)) (local.get $x)) (then
              (local.set $bits (select
                (i32.add (local.get $bits) (i32.const 1))
                (i32.sub (local.get $bits) (i32.const 1))
                (f64.lt (f64.abs (f64.promote_f32 (local.get $f))) (f64.abs (local.get $x)))))))))))
      (i32.store align=1 (local.get $t) (local.get $bits))
      (local.set $s (i32.add (local.get $s) (i32.const 8)))
      (local.set $t (i32.add (local.get $t) (i32.const 4)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))

  (func $toDouble (param $t i32) (param $d i32) (param $n i32)
    (local $f f32)
    (loop $next
      (local.set $f (f32.load align=1 (local.get $t)))
      (i64.store align=1 (local.get $d) (select
        (i64.reinterpret_f64 (f64.promote_f32 (local.get $f)))
        (i64.const 0x7fffffffffffffff)
        (f32.eq (local.get $f) (local.get $f))))
      (local.set $t (i32.add (local.get $t) (i32.const 4)))
      (local.set $d (i32.add (local.get $d) (i32.const 8)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))

  (func $load (param $from i32) (param $s i32) (param $t i32) (param $n i32) (param $odd i32)
    (block $f8e5m2 (block $f8e4m3 (block $bf16 (block $f16 (block $f64
      (br_table $f64 $f64 $f16 $bf16 $f8e4m3 $f8e5m2 (local.get $from)))
      (call $fromDouble (local.get $s) (local.get $t) (local.get $n) (local.get $odd)) (return))
      (call $widen (local.get $s) (local.get $t) (local.get $n) (i32.const 2) (i32.const 13) (i32.const 0x38000000)
        (i32.const 0x400) (f32.const 0x1p-24) (i32.const 0x7bff) (i32.const 0x7c00) (i32.const 16)) (return))
      (call $widen (local.get $s) (local.get $t) (local.get $n) (i32.const 2) (i32.const 16) (i32.const 0)
        (i32.const 0) (f32.const 1) (i32.const 0x7f7f) (i32.const 0x7f80) (i32.const 16)) (return))
      (call $widen (local.get $s) (local.get $t) (local.get $n) (i32.const 1) (i32.const 20) (i32.const 0x3c000000)
        (i32.const 8) (f32.const 0x1p-9) (i32.const 0x7e) (i32.const 0) (i32.const 24)) (return))
    (call $widen (local.get $s) (local.get $t) (local.get $n) (i32.const 1) (i32.const 21) (i32.const 0x38000000)
      (i32.const 4) (f32.const 0x1p-16) (i32.const 0x7b) (i32.const 0x7c) (i32.const 24)))

  (func $store (param $to i32) (param $t i32) (param $d i32) (param $n i32)
    (block $f8e5m2 (block $f8e4m3 (block $bf16 (block $f16 (block $f64
      (br_table $f64 $f64 $f16 $bf16 $f8e4m3 $f8e5m2 (local.get $to)))
      (call $toDouble (local.get $t) (local.get $d) (local.get $n)) (return))
      (call $narrow (local.get $t) (local.get $d) (local.get $n) (i32.const 2) (i32.const 13) (i32.const 0x38000000)
        (i32.const 0x38800000) (i32.const 0x3f000000) (i32.const 0x7c00) (i32.const 0x7fff) (i32.const 16)) (return))
      (call $narrow (local.get $t) (local.get $d) (local.get $n) (i32.const 2) (i32.const 16) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0x7f80) (i32.const 0x7fff) (i32.const 16)) (return))
      (call $narrow (local.get $t) (local.get $d) (local.get $n) (i32.const 1) (i32.const 20) (i32.const 0x3c000000)
        (i32.const 0x3c800000) (i32.const 0x46800000) (i32.const 0x7e) (i32.const 0x7f) (i32.const 24)) (return))
    (call $narrow (local.get $t) (local.get $d) (local.get $n) (i32.const 1) (i32.const 21) (i32.const 0x38000000)
      (i32.const 0x38800000) (i32.const 0x43000000) (i32.const 0x7b) (i32.const 0x7f) (i32.const 24)))

  ;; One run, 2048 elements at a time: the tile is 8 KiB of $scratch unless f32 is one of the types.
  (func $run (param $from i32) (param $to i32) (param $d i32) (param $s i32) (param $n i32)
    (param $dsize i32) (param $ssize i32) (param $scratch i32)
    (local $part i32) (local $tile i32)
    (loop $next
      (local.set $part (select (local.get $n) (i32.const 2048) (i32.lt_u (local.get $n) (i32.const 2048))))
      (local.set $tile (select (local.get $s)
        (select (local.get $d) (local.get $scratch) (i32.eq (local.get $to) (i32.const 1)))
        (i32.eq (local.get $from) (i32.const 1))))
      (if (i32.ne (local.get $from) (i32.const 1)) (then
        (call $load (local.get $from) (local.get $s) (local.get $tile) (local.get $part)
          (i32.ne (local.get $to) (i32.const 1)))))
      (if (i32.ne (local.get $to) (i32.const 1)) (then
        (call $store (local.get $to) (local.get $tile) (local.get $d) (local.get $part))))
      (local.set $s (i32.add (local.get $s) (i32.mul (local.get $part) (local.get $ssize))))
      (local.set $d (i32.add (local.get $d) (i32.mul (local.get $part) (local.get $dsize))))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (local.get $part))))))

  ;; As copyRuns in copy.wat, with `inner` elements per run, converted from dtype $from to another dtype $to.
  (func (export "castRuns")
    (param $from i32) (param $to i32) (param $dsize i32) (param $ssize i32) (param $scratch i32)
    (param $d i32) (param $s i32) (param $inner i32) (param $c1 i32) (param $c2 i32)
    (param $d0 i32) (param $d1 i32) (param $d2 i32) (param $s0 i32) (param $s1 i32) (param $s2 i32)
    (param $i0 i32) (param $i1 i32) (param $i2 i32) (param $count i32)
    (loop $next
      (call $run (local.get $from) (local.get $to)
        (i32.add
          (i32.add (local.get $d) (i32.mul (local.get $i0) (local.get $d0)))
          (i32.add (i32.mul (local.get $i1) (local.get $d1)) (i32.mul (local.get $i2) (local.get $d2))))
        (i32.add
          (i32.add (local.get $s) (i32.mul (local.get $i0) (local.get $s0)))
          (i32.add (i32.mul (local.get $i1) (local.get $s1)) (i32.mul (local.get $i2) (local.get $s2))))
        (local.get $inner) (local.get $dsize) (local.get $ssize) (local.get $scratch))
      (local.set $i2 (i32.add (local.get $i2) (i32.const 1)))
      (if (i32.ge_u (local.get $i2) (local.get $c2)) (then
        (local.set $i2 (i32.const 0))
        (local.set $i1 (i32.add (local.get $i1) (i32.const 1)))
        (if (i32.ge_u (local.get $i1) (local.get $c1)) (then
          (local.set $i1 (i32.const 0))
          (local.set $i0 (i32.add (local.get $i0) (i32.const 1)))))))
      (br_if $next (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))))
