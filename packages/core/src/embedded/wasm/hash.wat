;; SPDX-License-Identifier: Apache-2.0
;; Hashes strided runs by the definition of transfer/group-hash.ts: a sum of mixed 8-byte words, in any order.
(module
  (import "arena" "memory" (memory 1 65536 shared))

  ;; The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
  (func $mix (param $x i64) (result i64)
    (local.set $x (i64.mul
      (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 30))) (i64.const 0xBF58476D1CE4E5B9)))
    (local.set $x (i64.mul
      (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 27))) (i64.const 0x94D049BB133111EB)))
    (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 31))))

  ;; The last 1 to 7 bytes of a run as a word, zero above.
  (func $tail (param $p i32) (param $bytes i32) (result i64)
    (local $word i64)
    (loop $byte
      (local.set $bytes (i32.sub (local.get $bytes) (i32.const 1)))
      (local.set $word (i64.or
        (i64.shl (local.get $word) (i64.const 8))
        (i64.load8_u (i32.add (local.get $p) (local.get $bytes)))))
      (br_if $byte (local.get $bytes)))
    (local.get $word))

  ;; Stores at `out` the sum over `count` (at least 1) runs of `inner` (at least 1) bytes from loop position (i0, i1, i2) on,
  ;; whose first word has number `index`. Loops as in copy.wat. No 64-bit value passes to JavaScript, where it would be a BigInt.
  (func (export "hashRuns")
    (param $base i32) (param $inner i32) (param $c1 i32) (param $c2 i32)
    (param $s0 i32) (param $s1 i32) (param $s2 i32)
    (param $i0 i32) (param $i1 i32) (param $i2 i32) (param $count i32) (param $index f64) (param $out i32)
    (local $p i32) (local $words i32) (local $rest i32) (local $salt i64) (local $sum i64) (local $x i64)
    (local.set $rest (i32.and (local.get $inner) (i32.const 7)))
    (local.set $salt (i64.mul (i64.trunc_f64_u (local.get $index)) (i64.const 0x9E3779B97F4A7C15)))
    (loop $run
      (local.set $p (i32.add
        (i32.add (local.get $base) (i32.mul (local.get $i0) (local.get $s0)))
        (i32.add (i32.mul (local.get $i1) (local.get $s1)) (i32.mul (local.get $i2) (local.get $s2)))))
      (local.set $words (i32.shr_u (local.get $inner) (i32.const 3)))
      (block $end
        (loop $word
          (br_if $end (i32.eqz (local.get $words)))
          (local.set $salt (i64.add (local.get $salt) (i64.const 0x9E3779B97F4A7C15)))
          (local.set $x (i64.add (i64.load align=1 (local.get $p)) (local.get $salt)))
          (local.set $x (i64.mul
            (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 30))) (i64.const 0xBF58476D1CE4E5B9)))
          (local.set $x (i64.mul
            (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 27))) (i64.const 0x94D049BB133111EB)))
          (local.set $sum (i64.add
            (local.get $sum) (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 31)))))
          (local.set $p (i32.add (local.get $p) (i32.const 8)))
          (local.set $words (i32.sub (local.get $words) (i32.const 1)))
          (br $word)))
      (if (local.get $rest) (then
        (local.set $salt (i64.add (local.get $salt) (i64.const 0x9E3779B97F4A7C15)))
        (local.set $sum (i64.add (local.get $sum)
          (call $mix (i64.add (call $tail (local.get $p) (local.get $rest)) (local.get $salt)))))))
      (local.set $i2 (i32.add (local.get $i2) (i32.const 1)))
      (if (i32.ge_u (local.get $i2) (local.get $c2)) (then
        (local.set $i2 (i32.const 0))
        (local.set $i1 (i32.add (local.get $i1) (i32.const 1)))
        (if (i32.ge_u (local.get $i1) (local.get $c1)) (then
          (local.set $i1 (i32.const 0))
          (local.set $i0 (i32.add (local.get $i0) (i32.const 1)))))))
      (br_if $run (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
    (i64.store align=1 (local.get $out) (local.get $sum))))
