;; A tool as a core module: the host allocates memory with `palyra_alloc`, writes the input (JSON) there and calls `run` with its address and length.
;; `run` returns the address of the output in the upper half and its length in the lower half. This one returns its input.
(module
  (memory (export "memory") 1)
  (global $free (mut i32) (i32.const 1024))

  (func (export "palyra_alloc") (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $free))
    (global.set $free (i32.add (global.get $free) (local.get $size)))
    (block $enough
      (br_if $enough (i32.le_u (global.get $free) (i32.mul (memory.size) (i32.const 65536))))
      (br_if $enough (i32.ne (i32.const -1)
        (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get $size) (i32.const 65536))))))
      unreachable)
    (local.get $at))

  (func (export "run") (param $at i32) (param $length i32) (result i64)
    (i64.or
      (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32))
      (i64.extend_i32_u (local.get $length)))))
