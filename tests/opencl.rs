//! The OpenCL room on every implementation that is installed.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod implementations;

use std::sync::Arc;

use implementations::on_each;
use socbfs::{
    memory::{Owner, SharedSlice, Way},
    opencl::{Argument, Buffer, Device, Kernel, Limits},
};

/// Adds to every value its place, a number, and the size of local memory over 4.
const SOURCE: &str = "
kernel void add(global uint *values, uint count, uint number) {
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) values[i] += i + number;
}
kernel void sum(global const uint *values, uint count, global uint *result, local uint *part) {
    uint own = 0;
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) own += values[i];
    part[get_local_id(0)] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        uint all = 0;
        for (uint i = 0; i < get_local_size(0); i++) all += part[i];
        atomic_add(result, all);
    }
}
kernel void numbers(global ulong *out, uint a, int b, ulong c) {
    if (get_global_id(0) == 0) { out[0] = a; out[1] = (ulong)(long)b; out[2] = c; }
}
kernel void large(global uint *out) {
    local uint room[2000];
    room[get_local_id(0)] = out[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[0] = room[0];
}
";

fn kernel(device: &Arc<Device>, name: &str) -> Kernel {
    device.program(SOURCE, "-cl-std=CL1.2").unwrap().kernel(name).unwrap()
}

fn add(kernel: &Kernel, values: &impl Argument, count: u32, number: u32) {
    kernel.set_buffer(0, values).unwrap();
    kernel.set(1, count).unwrap();
    kernel.set(2, number).unwrap();
    kernel.launch(3, kernel.max_group().min(16)).unwrap();
}

#[test]
fn kernels_compute_on_buffers() {
    on_each("kernels_compute_on_buffers", Limits::default(), |name, device| {
        let count = 10_000u32;
        let host: Vec<u32> = (0..count).map(|i| i * 3).collect();
        let values = Buffer::from_host(device, &host, "a test").unwrap();
        let add_kernel = kernel(device, "add");
        add(&add_kernel, &values, count, 100);
        let mut back = vec![0; 50];
        values.read(700..750, &mut back).unwrap();
        assert!(back.iter().enumerate().all(|(i, &value)| value as usize == (700 + i) * 4 + 100), "{name}: {back:?}");

        let sum = kernel(device, "sum");
        let result = Buffer::<u32>::new(device, 1, "a test").unwrap();
        result.fill(0).unwrap();
        let local = sum.max_group().min(16);
        sum.set_buffer(0, &values).unwrap();
        sum.set(1, count).unwrap();
        sum.set_buffer(2, &result).unwrap();
        sum.set_local(3, local * 4).unwrap();
        sum.launch(4, local).unwrap();
        let mut total = [0];
        result.read(0..1, &mut total).unwrap();
        assert_eq!(total[0], (0..count).fold(0u32, |sum, i| sum.wrapping_add(i * 4 + 100)), "{name}");

        let out = Buffer::<u64>::new(device, 3, "a test").unwrap();
        let numbers = kernel(device, "numbers");
        numbers.set_buffer(0, &out).unwrap();
        numbers.set(1, u32::MAX).unwrap();
        numbers.set(2, -5i32).unwrap();
        numbers.set(3, 1u64 << 40).unwrap();
        numbers.launch(1, 1).unwrap();
        let mut got = [0; 3];
        out.read(0..3, &mut got).unwrap();
        assert_eq!(got, [u64::from(u32::MAX), -5i64 as u64, 1 << 40], "{name}");
    });
}

#[test]
fn every_way_carries_values_both_ways() {
    on_each("every_way_carries_values_both_ways", Limits::default(), |name, device| {
        let add_kernel = kernel(device, "add");
        for way in Way::ALL {
            let made = SharedSlice::<u32>::on(device, way, 5_000, "a test");
            if !way.offered(device.info()) {
                assert!(made.unwrap_err().to_string().contains(&way.to_string()));
                continue;
            }
            let mut slice = made.unwrap();
            assert!(slice.iter().all(|&value| value == 0) && slice.len() == 5_000, "{name} {way}");
            for round in 0..3u32 {
                assert_eq!(slice.owner(), Owner::Host);
                for (i, value) in slice.iter_mut().enumerate() {
                    *value = round + i as u32;
                }
                slice.to_device(0..5_000).unwrap();
                slice.to_device(0..5_000).unwrap();
                assert_eq!((slice.owner(), slice.len(), slice.device_len()), (Owner::Device, 0, 5_000));
                add(&add_kernel, &slice, 5_000, 7);
                // From the device to reading, and on.
                slice.read_both(0..5_000).unwrap();
                assert!(slice.iter().enumerate().all(|(i, &value)| value == round + 2 * i as u32 + 7), "{name} {way} {round}");
                slice.to_host(0..5_000).unwrap();
                slice[9] = 1;
                // From the host to reading, while a kernel reads.
                slice.read_both(0..5_000).unwrap();
                let result = Buffer::<u32>::from_host(device, &[0], "a test").unwrap();
                let sum = kernel(device, "sum");
                sum.set_buffer(0, &slice).unwrap();
                sum.set(1, 10u32).unwrap();
                sum.set_buffer(2, &result).unwrap();
                sum.set_local(3, 4).unwrap();
                sum.launch(1, 1).unwrap();
                assert_eq!(slice[9], 1);
                let mut total = [0];
                result.read(0..1, &mut total).unwrap();
                assert_eq!(total[0], (0..9).map(|i| round + 2 * i + 7).sum::<u32>() + 1, "{name} {way} {round}");
                // From reading to the device, straight back.
                slice.to_device(0..5_000).unwrap();
                add(&add_kernel, &slice, 5_000, 0);
                slice.to_host(0..5_000).unwrap();
                assert!(slice[10..].iter().enumerate().all(|(i, &value)| value == round + 3 * (i as u32 + 10) + 7), "{name} {way} {round}");
            }
        }
    });
}
