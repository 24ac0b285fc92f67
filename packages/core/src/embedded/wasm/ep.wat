;; SPDX-License-Identifier: Apache-2.0
;; Arithmetic of expert parallelism on rows: weighted sums of rows of f32, f16 or bf16, and fp8 with a scale per block.
;;
;; Sums are f32, each product and each addition rounded by itself, and start with their first term. A result is rounded once
;; to nearest even; a NaN becomes the canonical one. Dtypes go by their codes: f32 1, f16 2, bf16 3.
(module
  (import "arena" "memory" (memory 1 65536 shared))

  ;; Four f16 in the low half of $p, zero-extended to 32 bits, as f32.
  (func $fromF16 (param $p v128) (result v128)
    (local $m v128) (local $sign v128) (local $v v128)
    (local.set $sign (v128.and (i32x4.shl (local.get $p) (i32.const 16)) (v128.const i32x4 0x80000000 0x80000000 0x80000000 0x80000000)))
    (local.set $m (v128.and (local.get $p) (v128.const i32x4 0x7fff 0x7fff 0x7fff 0x7fff)))
    (local.set $v (v128.or (local.get $sign) (v128.bitselect
      (f32x4.mul (f32x4.convert_i32x4_s (local.get $m)) (f32x4.splat (f32.const 0x1p-24)))
      (i32x4.add (i32x4.shl (local.get $m) (i32.const 13)) (i32x4.splat (i32.const 0x38000000)))
      (i32x4.lt_s (local.get $m) (i32x4.splat (i32.const 0x400))))))
    (v128.bitselect
      (v128.bitselect
        (v128.or (local.get $sign) (i32x4.splat (i32.const 0x7f800000)))
        (i32x4.splat (i32.const 0x7fffffff))
        (i32x4.eq (local.get $m) (i32x4.splat (i32.const 0x7c00))))
      (local.get $v)
      (i32x4.gt_s (local.get $m) (i32x4.splat (i32.const 0x7bff)))))

  ;; f32 to f16 in the low 16 bits of each lane, as $narrow in cast.wat.
  (func $toF16 (param $u v128) (result v128)
    (local $a v128) (local $r v128)
    (local.set $a (v128.and (local.get $u) (i32x4.splat (i32.const 0x7fffffff))))
    (local.set $r (i32x4.shr_u
      (i32x4.add
        (i32x4.add (local.get $a) (v128.and (i32x4.shr_u (local.get $a) (i32.const 13)) (i32x4.splat (i32.const 1))))
        (i32x4.splat (i32.sub (i32.const 0xfff) (i32.const 0x38000000))))
      (i32.const 13)))
    (local.set $r (v128.bitselect
      (i32x4.sub (f32x4.add (local.get $a) (i32x4.splat (i32.const 0x3f000000))) (i32x4.splat (i32.const 0x3f000000)))
      (local.get $r)
      (i32x4.lt_s (local.get $a) (i32x4.splat (i32.const 0x38800000)))))
    (local.set $r (v128.or
      (i32x4.min_s (local.get $r) (i32x4.splat (i32.const 0x7c00)))
      (i32x4.shl (i32x4.shr_u (local.get $u) (i32.const 31)) (i32.const 15))))
    (v128.bitselect (i32x4.splat (i32.const 0x7fff)) (local.get $r)
      (i32x4.gt_s (local.get $a) (i32x4.splat (i32.const 0x7f800000)))))

  ;; f32 to bf16 in the low 16 bits of each lane.
  (func $toBf16 (param $u v128) (result v128)
    (v128.bitselect (i32x4.splat (i32.const 0x7fff))
      (i32x4.shr_u
        (i32x4.add
          (i32x4.add (local.get $u) (v128.and (i32x4.shr_u (local.get $u) (i32.const 16)) (i32x4.splat (i32.const 1))))
          (i32x4.splat (i32.const 0x7fff)))
        (i32.const 16))
      (f32x4.ne (local.get $u) (local.get $u))))

  ;; f32 to f8e4m3 in the low 8 bits of each lane, saturating.
  (func $toF8 (param $u v128) (result v128)
    (local $a v128) (local $r v128)
    (local.set $a (v128.and (local.get $u) (i32x4.splat (i32.const 0x7fffffff))))
    (local.set $r (i32x4.shr_u
      (i32x4.add
        (i32x4.add (local.get $a) (v128.and (i32x4.shr_u (local.get $a) (i32.const 20)) (i32x4.splat (i32.const 1))))
        (i32x4.splat (i32.sub (i32.const 0x7ffff) (i32.const 0x3c000000))))
      (i32.const 20)))
    (local.set $r (v128.bitselect
      (i32x4.sub (f32x4.add (local.get $a) (i32x4.splat (i32.const 0x46800000))) (i32x4.splat (i32.const 0x46800000)))
      (local.get $r)
      (i32x4.lt_s (local.get $a) (i32x4.splat (i32.const 0x3c800000)))))
    (local.set $r (v128.or
      (i32x4.min_s (local.get $r) (i32x4.splat (i32.const 0x7e)))
      (i32x4.shl (i32x4.shr_u (local.get $u) (i32.const 31)) (i32.const 7))))
    (v128.bitselect (i32x4.splat (i32.const 0x7f)) (local.get $r)
      (i32x4.gt_s (local.get $a) (i32x4.splat (i32.const 0x7f800000)))))

  ;; f8e4m3 in the low 8 bits of each lane as f32; $toF8 gives no other NaN than 0x7f.
  (func $fromF8 (param $p v128) (result v128)
    (local $m v128) (local $v v128)
    (local.set $m (v128.and (local.get $p) (i32x4.splat (i32.const 0x7f))))
    (local.set $v (v128.or
      (i32x4.shl (v128.and (local.get $p) (i32x4.splat (i32.const 0x80))) (i32.const 24))
      (v128.bitselect
        (f32x4.mul (f32x4.convert_i32x4_s (local.get $m)) (f32x4.splat (f32.const 0x1p-9)))
        (i32x4.add (i32x4.shl (local.get $m) (i32.const 20)) (i32x4.splat (i32.const 0x3c000000)))
        (i32x4.lt_s (local.get $m) (i32x4.splat (i32.const 8))))))
    (v128.bitselect (i32x4.splat (i32.const 0x7fffffff)) (local.get $v)
      (i32x4.eq (local.get $m) (i32x4.splat (i32.const 0x7f)))))

  ;; Four elements at $s as f32.
  (func $load4 (param $dtype i32) (param $s i32) (result v128)
    (local $p v128)
    (if (i32.eq (local.get $dtype) (i32.const 1)) (then (return (v128.load align=1 (local.get $s)))))
    (local.set $p (i32x4.extend_low_i16x8_u (v128.load64_zero align=1 (local.get $s))))
    (if (i32.eq (local.get $dtype) (i32.const 3)) (then (return (i32x4.shl (local.get $p) (i32.const 16)))))
    (call $fromF16 (local.get $p)))

  ;; Rounds eight f32 to 2-byte elements, in one vector.
  (func $pack (param $dtype i32) (param $a v128) (param $b v128) (result v128)
    (if (i32.eq (local.get $dtype) (i32.const 3))
      (then
        (local.set $a (call $toBf16 (local.get $a)))
        (local.set $b (call $toBf16 (local.get $b))))
      (else
        (local.set $a (call $toF16 (local.get $a)))
        (local.set $b (call $toF16 (local.get $b)))))
    (i8x16.shuffle 0 1 4 5 8 9 12 13 16 17 20 21 24 25 28 29 (local.get $a) (local.get $b)))

  ;; Rounds $v to a 2-byte dtype and back.
  (func $round (param $dtype i32) (param $v v128) (result v128)
    (if (i32.eq (local.get $dtype) (i32.const 3)) (then
      (return (i32x4.shl (call $toBf16 (local.get $v)) (i32.const 16)))))
    (call $fromF16 (call $toF16 (local.get $v))))

  ;; One unweighted sum of bf16 rows, a cache line at a time. Sums begin with -0, to which adding is exact for every term.
  (func $plainBf16 (param $d i32) (param $lines i32) (param $terms i32) (param $end i32)
    (local $at i32) (local $t i32) (local $s i32) (local $x v128)
    (local $a0 v128) (local $a1 v128) (local $a2 v128) (local $a3 v128) (local $a4 v128) (local $a5 v128) (local $a6 v128) (local $a7 v128)
    (loop $line
      (local.set $t (local.get $terms))
      (local.set $a0 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a1 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a2 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a3 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a4 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a5 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a6 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a7 (f32x4.splat (f32.const -0x0p+0)))
      (loop $term
        (local.set $s (i32.add (i32.load (local.get $t)) (local.get $at)))
        (local.set $x (v128.load align=1 (local.get $s)))
        (local.set $a0 (f32x4.add (local.get $a0)
          (i8x16.shuffle 0 1 16 17 2 3 18 19 4 5 20 21 6 7 22 23 (v128.const i32x4 0 0 0 0) (local.get $x))))
        (local.set $a1 (f32x4.add (local.get $a1)
          (i8x16.shuffle 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31 (v128.const i32x4 0 0 0 0) (local.get $x))))
        (local.set $x (v128.load offset=16 align=1 (local.get $s)))
        (local.set $a2 (f32x4.add (local.get $a2)
          (i8x16.shuffle 0 1 16 17 2 3 18 19 4 5 20 21 6 7 22 23 (v128.const i32x4 0 0 0 0) (local.get $x))))
        (local.set $a3 (f32x4.add (local.get $a3)
          (i8x16.shuffle 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31 (v128.const i32x4 0 0 0 0) (local.get $x))))
        (local.set $x (v128.load offset=32 align=1 (local.get $s)))
        (local.set $a4 (f32x4.add (local.get $a4)
          (i8x16.shuffle 0 1 16 17 2 3 18 19 4 5 20 21 6 7 22 23 (v128.const i32x4 0 0 0 0) (local.get $x))))
        (local.set $a5 (f32x4.add (local.get $a5)
          (i8x16.shuffle 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31 (v128.const i32x4 0 0 0 0) (local.get $x))))
        (local.set $x (v128.load offset=48 align=1 (local.get $s)))
        (local.set $a6 (f32x4.add (local.get $a6)
          (i8x16.shuffle 0 1 16 17 2 3 18 19 4 5 20 21 6 7 22 23 (v128.const i32x4 0 0 0 0) (local.get $x))))
        (local.set $a7 (f32x4.add (local.get $a7)
          (i8x16.shuffle 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31 (v128.const i32x4 0 0 0 0) (local.get $x))))
        (br_if $term (i32.lt_u (local.tee $t (i32.add (local.get $t) (i32.const 16))) (local.get $end))))
      (local.set $s (i32.add (local.get $d) (local.get $at)))
      (v128.store align=1 (local.get $s) (call $pack (i32.const 3) (local.get $a0) (local.get $a1)))
      (v128.store offset=16 align=1 (local.get $s) (call $pack (i32.const 3) (local.get $a2) (local.get $a3)))
      (v128.store offset=32 align=1 (local.get $s) (call $pack (i32.const 3) (local.get $a4) (local.get $a5)))
      (v128.store offset=48 align=1 (local.get $s) (call $pack (i32.const 3) (local.get $a6) (local.get $a7)))
      (local.set $at (i32.add (local.get $at) (i32.const 64)))
      (br_if $line (local.tee $lines (i32.sub (local.get $lines) (i32.const 1))))))

  ;; Weighted sums of bf16 rows by rank, 16 elements at a time; $payload as in epSum.
  (func $rankedBf16 (param $d i32) (param $strips i32) (param $terms i32) (param $end i32) (param $payload i32)
    (local $at i32) (local $t i32) (local $s i32) (local $x v128) (local $w v128)
    (local $a0 v128) (local $y0 v128) (local $a1 v128) (local $y1 v128) (local $a2 v128) (local $y2 v128) (local $a3 v128) (local $y3 v128)
    (loop $strip
      (local.set $t (local.get $terms))
      (local.set $a0 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $y0 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a1 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $y1 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a2 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $y2 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $a3 (f32x4.splat (f32.const -0x0p+0)))
      (local.set $y3 (f32x4.splat (f32.const -0x0p+0)))
      (loop $term
        (local.set $s (i32.add (i32.load (local.get $t)) (local.get $at)))
        (local.set $w (v128.load32_splat offset=4 (local.get $t)))
        (local.set $x (v128.load align=1 (local.get $s)))
        (local.set $a0 (f32x4.add (local.get $a0) (f32x4.mul (local.get $w)
          (i8x16.shuffle 0 1 16 17 2 3 18 19 4 5 20 21 6 7 22 23 (v128.const i32x4 0 0 0 0) (local.get $x)))))
        (local.set $a1 (f32x4.add (local.get $a1) (f32x4.mul (local.get $w)
          (i8x16.shuffle 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31 (v128.const i32x4 0 0 0 0) (local.get $x)))))
        (local.set $x (v128.load offset=16 align=1 (local.get $s)))
        (local.set $a2 (f32x4.add (local.get $a2) (f32x4.mul (local.get $w)
          (i8x16.shuffle 0 1 16 17 2 3 18 19 4 5 20 21 6 7 22 23 (v128.const i32x4 0 0 0 0) (local.get $x)))))
        (local.set $a3 (f32x4.add (local.get $a3) (f32x4.mul (local.get $w)
          (i8x16.shuffle 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31 (v128.const i32x4 0 0 0 0) (local.get $x)))))
        (if (i32.and (i32.load offset=8 (local.get $t)) (i32.const 2)) (then
          (if (local.get $payload) (then
            (local.set $a0 (v128.bitselect (i32x4.splat (i32.const 0x7fff0000))
              (v128.and (i32x4.splat (i32.const 0xffff0000)) (i32x4.add (local.get $a0) (i32x4.add (i32x4.splat (i32.const 0x7fff))
                (v128.and (i32x4.shr_u (local.get $a0) (i32.const 16)) (i32x4.splat (i32.const 1))))))
              (f32x4.ne (local.get $a0) (local.get $a0))))
            (local.set $a1 (v128.bitselect (i32x4.splat (i32.const 0x7fff0000))
              (v128.and (i32x4.splat (i32.const 0xffff0000)) (i32x4.add (local.get $a1) (i32x4.add (i32x4.splat (i32.const 0x7fff))
                (v128.and (i32x4.shr_u (local.get $a1) (i32.const 16)) (i32x4.splat (i32.const 1))))))
              (f32x4.ne (local.get $a1) (local.get $a1))))
            (local.set $a2 (v128.bitselect (i32x4.splat (i32.const 0x7fff0000))
              (v128.and (i32x4.splat (i32.const 0xffff0000)) (i32x4.add (local.get $a2) (i32x4.add (i32x4.splat (i32.const 0x7fff))
                (v128.and (i32x4.shr_u (local.get $a2) (i32.const 16)) (i32x4.splat (i32.const 1))))))
              (f32x4.ne (local.get $a2) (local.get $a2))))
            (local.set $a3 (v128.bitselect (i32x4.splat (i32.const 0x7fff0000))
              (v128.and (i32x4.splat (i32.const 0xffff0000)) (i32x4.add (local.get $a3) (i32x4.add (i32x4.splat (i32.const 0x7fff))
                (v128.and (i32x4.shr_u (local.get $a3) (i32.const 16)) (i32x4.splat (i32.const 1))))))
              (f32x4.ne (local.get $a3) (local.get $a3))))))
          (local.set $y0 (f32x4.add (local.get $y0) (local.get $a0)))
          (local.set $a0 (f32x4.splat (f32.const -0x0p+0)))
          (local.set $y1 (f32x4.add (local.get $y1) (local.get $a1)))
          (local.set $a1 (f32x4.splat (f32.const -0x0p+0)))
          (local.set $y2 (f32x4.add (local.get $y2) (local.get $a2)))
          (local.set $a2 (f32x4.splat (f32.const -0x0p+0)))
          (local.set $y3 (f32x4.add (local.get $y3) (local.get $a3)))
          (local.set $a3 (f32x4.splat (f32.const -0x0p+0)))))
        (br_if $term (i32.lt_u (local.tee $t (i32.add (local.get $t) (i32.const 16))) (local.get $end))))
      (local.set $s (i32.add (local.get $d) (local.get $at)))
      (v128.store align=1 (local.get $s) (call $pack (i32.const 3) (local.get $y0) (local.get $y1)))
      (v128.store offset=16 align=1 (local.get $s) (call $pack (i32.const 3) (local.get $y2) (local.get $y3)))
      (local.set $at (i32.add (local.get $at) (i32.const 32)))
      (br_if $strip (local.tee $strips (i32.sub (local.get $strips) (i32.const 1))))))

  ;; The sum of rows into $d, $bytes (a multiple of 16) bytes of each. $terms lists at least one row in 16 bytes each: its
  ;; address, f32 weight (1 unless weighted), flags (1: is weighted; 2: the last of its rank). $payload 1: the sum of a rank is
  ;; rounded to the dtype before it is added to the others; 2: all rows are one unweighted sum.
  (func (export "epSum")
    (param $dtype i32) (param $d i32) (param $bytes i32) (param $terms i32) (param $count i32) (param $payload i32)
    (local $at i32) (local $t i32) (local $end i32) (local $flags i32) (local $open i32) (local $outer i32)
    (local $x v128) (local $a v128) (local $b v128) (local $ia v128) (local $ib v128) (local $ya v128) (local $yb v128)
    (local $w v128)
    (local.set $end (i32.add (local.get $terms) (i32.shl (local.get $count) (i32.const 4))))
    (if (i32.eq (local.get $dtype) (i32.const 3)) (then
      (if (i32.eq (local.get $payload) (i32.const 2))
        (then
          (local.set $at (i32.and (local.get $bytes) (i32.const -64)))
          (if (local.get $at) (then (call $plainBf16
            (local.get $d) (i32.shr_u (local.get $at) (i32.const 6)) (local.get $terms) (local.get $end)))))
        (else
          (local.set $at (i32.and (local.get $bytes) (i32.const -32)))
          (if (local.get $at) (then (call $rankedBf16
            (local.get $d) (i32.shr_u (local.get $at) (i32.const 5)) (local.get $terms) (local.get $end)
            (local.get $payload))))))
      (if (i32.eq (local.get $at) (local.get $bytes)) (then (return)))))
    (loop $strip
      (local.set $t (local.get $terms))
      (local.set $open (i32.const 0))
      (local.set $outer (i32.const 0))
      (loop $term
        (local.set $x (v128.load align=1 (i32.add (i32.load (local.get $t)) (local.get $at))))
        (local.set $flags (i32.load offset=8 (local.get $t)))
        (if (i32.eq (local.get $dtype) (i32.const 3))
          (then
            (local.set $a (i8x16.shuffle 0 1 16 17 2 3 18 19 4 5 20 21 6 7 22 23 (v128.const i32x4 0 0 0 0) (local.get $x)))
            (local.set $b (i8x16.shuffle 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31 (v128.const i32x4 0 0 0 0) (local.get $x))))
          (else
            (if (i32.eq (local.get $dtype) (i32.const 1))
              (then (local.set $a (local.get $x)))
              (else
                (local.set $a (call $fromF16 (i32x4.extend_low_i16x8_u (local.get $x))))
                (local.set $b (call $fromF16 (i32x4.extend_high_i16x8_u (local.get $x))))))))
        (if (i32.and (local.get $flags) (i32.const 1)) (then
          (local.set $w (v128.load32_splat offset=4 (local.get $t)))
          (local.set $a (f32x4.mul (local.get $w) (local.get $a)))
          (local.set $b (f32x4.mul (local.get $w) (local.get $b)))))
        (if (local.get $open)
          (then
            (local.set $ia (f32x4.add (local.get $ia) (local.get $a)))
            (local.set $ib (f32x4.add (local.get $ib) (local.get $b))))
          (else
            (local.set $ia (local.get $a))
            (local.set $ib (local.get $b))
            (local.set $open (i32.const 1))))
        (if (i32.and (local.get $flags) (i32.const 2)) (then
          (local.set $open (i32.const 0))
          (if (i32.eq (local.get $payload) (i32.const 1)) (then
            (local.set $ia (call $round (local.get $dtype) (local.get $ia)))
            (local.set $ib (call $round (local.get $dtype) (local.get $ib)))))
          (if (local.get $outer)
            (then
              (local.set $ya (f32x4.add (local.get $ya) (local.get $ia)))
              (local.set $yb (f32x4.add (local.get $yb) (local.get $ib))))
            (else
              (local.set $ya (local.get $ia))
              (local.set $yb (local.get $ib))
              (local.set $outer (i32.const 1))))))
        (br_if $term (i32.lt_u (local.tee $t (i32.add (local.get $t) (i32.const 16))) (local.get $end))))
      (v128.store align=1 (i32.add (local.get $d) (local.get $at))
        (if (result v128) (i32.eq (local.get $dtype) (i32.const 1))
          (then (v128.bitselect (i32x4.splat (i32.const 0x7fffffff)) (local.get $ya)
            (f32x4.ne (local.get $ya) (local.get $ya))))
          (else (call $pack (local.get $dtype) (local.get $ya) (local.get $yb)))))
      (br_if $strip (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $bytes)))))

  ;; Bits of the largest magnitude of $n f32 at $s: a NaN does not count, an infinity counts as the largest f32.
  (func $largest (param $s i32) (param $n i32) (result i32)
    (local $a v128) (local $m v128)
    (loop $next
      (local.set $a (v128.and (v128.load align=1 (local.get $s)) (i32x4.splat (i32.const 0x7fffffff))))
      (local.set $m (i32x4.max_s (local.get $m) (v128.andnot
        (i32x4.min_s (local.get $a) (i32x4.splat (i32.const 0x7f7fffff)))
        (i32x4.gt_s (local.get $a) (i32x4.splat (i32.const 0x7f800000))))))
      (local.set $s (i32.add (local.get $s) (i32.const 16)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 4)))))
    (local.set $m (i32x4.max_s (local.get $m) (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $m) (local.get $m))))
    (local.set $m (i32x4.max_s (local.get $m) (i8x16.shuffle 4 5 6 7 0 1 2 3 12 13 14 15 8 9 10 11 (local.get $m) (local.get $m))))
    (i32x4.extract_lane 0 (local.get $m)))

  ;; floor(log2) of a positive f32.
  (func $exponent (param $amax f32) (result i32)
    (i32.sub (i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 (f64.promote_f32 (local.get $amax))) (i64.const 52))) (i32.const 1023)))

  ;; 2^$e, exact down to the smallest f32.
  (func $power (param $e i32) (result f32)
    (f32.demote_f64 (f64.reinterpret_i64
      (i64.shl (i64.extend_i32_s (i32.add (local.get $e) (i32.const 1023))) (i64.const 52)))))

  ;; amax / 448 in f32; 1 where that is 0.
  (func $quotient (param $amax f32) (result f32)
    (local $s f32)
    (local.set $s (f32.div (local.get $amax) (f32.const 448)))
    (select (f32.const 1) (local.get $s) (f32.eq (local.get $s) (f32.const 0))))

  ;; The smallest f32 power of two that is at least amax / 448 = amax / (1.75 x 2^8); 1 for 0.
  (func $powerScale (param $amax f32) (result f32)
    (local $e i32)
    (if (f32.eq (local.get $amax) (f32.const 0)) (then (return (f32.const 1))))
    (local.set $e (i32.sub (call $exponent (local.get $amax)) (i32.const 8)))
    (if (i64.gt_u
      (i64.and (i64.reinterpret_f64 (f64.promote_f32 (local.get $amax))) (i64.const 0xfffffffffffff))
      (i64.const 0xc000000000000)) (then (local.set $e (i32.add (local.get $e) (i32.const 1)))))
    (call $power (select (local.get $e) (i32.const -149) (i32.gt_s (local.get $e) (i32.const -149)))))

  ;; The e8m0 byte of a block: floor(log2(amax)) - 8 + 127 within 0 and 254, 0 for a block of zeros.
  (func $e8m0 (param $amax f32) (result i32)
    (local $e i32)
    (if (f32.eq (local.get $amax) (f32.const 0)) (then (return (i32.const 0))))
    (local.set $e (i32.add (call $exponent (local.get $amax)) (i32.const 119)))
    (local.set $e (select (local.get $e) (i32.const 0) (i32.gt_s (local.get $e) (i32.const 0))))
    (select (local.get $e) (i32.const 254) (i32.lt_s (local.get $e) (i32.const 254))))

  ;; $n elements (a multiple of the block) at $s to f8e4m3 at $d with one scale per block at $scales. $recipe: 2 f32 scales per
  ;; 128, 3 the same as powers of two, 4 e8m0 per 32. $scratch: 512 bytes.
  (func (export "epQuantise")
    (param $dtype i32) (param $s i32) (param $n i32) (param $d i32) (param $scales i32) (param $recipe i32) (param $scratch i32)
    (local $block i32) (local $step i32) (local $i i32) (local $scale v128) (local $byte i32) (local $amax f32) (local $f f32)
    (local $r v128)
    (local.set $block (select (i32.const 32) (i32.const 128) (i32.eq (local.get $recipe) (i32.const 4))))
    (local.set $step (select (i32.const 16) (i32.const 8) (i32.eq (local.get $dtype) (i32.const 1))))
    (loop $next
      (local.set $i (i32.const 0))
      (loop $widen
        (v128.store (i32.add (local.get $scratch) (i32.shl (local.get $i) (i32.const 2)))
          (call $load4 (local.get $dtype) (local.get $s)))
        (local.set $s (i32.add (local.get $s) (local.get $step)))
        (br_if $widen (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (local.get $block))))
      (local.set $amax (f32.reinterpret_i32 (call $largest (local.get $scratch) (local.get $block))))
      (if (i32.eq (local.get $recipe) (i32.const 4))
        (then
          (local.set $byte (call $e8m0 (local.get $amax)))
          (i32.store8 (local.get $scales) (local.get $byte))
          (local.set $scales (i32.add (local.get $scales) (i32.const 1)))
          (local.set $f (call $power (i32.sub (local.get $byte) (i32.const 127)))))
        (else
          (local.set $f (if (result f32) (i32.eq (local.get $recipe) (i32.const 3))
            (then (call $powerScale (local.get $amax)))
            (else (call $quotient (local.get $amax)))))
          (f32.store align=1 (local.get $scales) (local.get $f))
          (local.set $scales (i32.add (local.get $scales) (i32.const 4)))))
      (local.set $scale (f32x4.splat (local.get $f)))
      (local.set $i (i32.const 0))
      (loop $narrow
        (local.set $r (call $toF8 (f32x4.div
          (v128.load (i32.add (local.get $scratch) (i32.shl (local.get $i) (i32.const 2)))) (local.get $scale))))
        (v128.store32_lane align=1 0 (local.get $d)
          (i8x16.shuffle 0 4 8 12 0 4 8 12 0 4 8 12 0 4 8 12 (local.get $r) (local.get $r)))
        (local.set $d (i32.add (local.get $d) (i32.const 4)))
        (br_if $narrow (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (local.get $block))))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (local.get $block))))))

  ;; As epSum, with the sum of each rank passed as f8e4m3 with one scale (amax / 448) per 128 channels. $n elements, a multiple
  ;; of 128. $scratch: 1024 bytes.
  (func (export "epSumFp8")
    (param $dtype i32) (param $d i32) (param $n i32) (param $terms i32) (param $count i32) (param $scratch i32)
    (local $at i32) (local $t i32) (local $end i32) (local $flags i32) (local $open i32) (local $outer i32) (local $i i32)
    (local $s i32) (local $inner i32) (local $step i32) (local $x v128) (local $scale v128)
    (local.set $end (i32.add (local.get $terms) (i32.shl (local.get $count) (i32.const 4))))
    (local.set $step (select (i32.const 16) (i32.const 8) (i32.eq (local.get $dtype) (i32.const 1))))
    (local.set $inner (i32.add (local.get $scratch) (i32.const 512)))
    (loop $block
      (local.set $t (local.get $terms))
      (local.set $open (i32.const 0))
      (local.set $outer (i32.const 0))
      (loop $term
        (local.set $s (i32.add (i32.load (local.get $t)) (local.get $at)))
        (local.set $flags (i32.load offset=8 (local.get $t)))
        (local.set $i (i32.const 0))
        (loop $add
          (local.set $x (call $load4 (local.get $dtype) (local.get $s)))
          (if (i32.and (local.get $flags) (i32.const 1)) (then
            (local.set $x (f32x4.mul (v128.load32_splat offset=4 (local.get $t)) (local.get $x)))))
          (if (local.get $open) (then
            (local.set $x (f32x4.add (v128.load (i32.add (local.get $inner) (local.get $i))) (local.get $x)))))
          (v128.store (i32.add (local.get $inner) (local.get $i)) (local.get $x))
          (local.set $s (i32.add (local.get $s) (local.get $step)))
          (br_if $add (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (i32.const 512))))
        (local.set $open (i32.const 1))
        (if (i32.and (local.get $flags) (i32.const 2)) (then
          (local.set $open (i32.const 0))
          (local.set $scale (f32x4.splat (call $quotient
            (f32.reinterpret_i32 (call $largest (local.get $inner) (i32.const 128))))))
          (local.set $i (i32.const 0))
          (loop $pass
            (local.set $x (f32x4.mul
              (call $fromF8 (call $toF8 (f32x4.div (v128.load (i32.add (local.get $inner) (local.get $i))) (local.get $scale))))
              (local.get $scale)))
            (if (local.get $outer) (then
              (local.set $x (f32x4.add (v128.load (i32.add (local.get $scratch) (local.get $i))) (local.get $x)))))
            (v128.store (i32.add (local.get $scratch) (local.get $i)) (local.get $x))
            (br_if $pass (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (i32.const 512))))
          (local.set $outer (i32.const 1))))
        (br_if $term (i32.lt_u (local.tee $t (i32.add (local.get $t) (i32.const 16))) (local.get $end))))
      (local.set $i (i32.const 0))
      (loop $store
        (local.set $x (v128.load (i32.add (local.get $scratch) (local.get $i))))
        (if (i32.eq (local.get $dtype) (i32.const 1))
          (then (v128.store align=1 (local.get $d) (v128.bitselect (i32x4.splat (i32.const 0x7fffffff)) (local.get $x)
            (f32x4.ne (local.get $x) (local.get $x)))))
          (else (v128.store64_lane align=1 0 (local.get $d) (call $pack (local.get $dtype) (local.get $x) (local.get $x)))))
        (local.set $d (i32.add (local.get $d) (local.get $step)))
        (br_if $store (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 16))) (i32.const 512))))
      (local.set $at (i32.add (local.get $at) (i32.shl (local.get $step) (i32.const 5))))
      (br_if $block (local.tee $n (i32.sub (local.get $n) (i32.const 128)))))))
