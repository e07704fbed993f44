"""Measures CEL on devices: compiling and evaluating typical selectors.

python bench/cel.py
"""

import time

from sully.machinery.cel import DeviceInput, device_environment, selects

EXPRESSIONS = {
    "driver": 'device.driver == "gpu.example.com"',
    "attribute and capacity": (
        'device.attributes["gpu.example.com"].model == "A100" && '
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) >= 0'
    ),
    "version": 'device.attributes["gpu.example.com"].ver.isGreaterThan(semver("1.2.3"))',
    "optional": 'device.attributes["gpu.example.com"].?slots.orValue(0) > 3',
    "loop": 'device.attributes["gpu.example.com"].exists(name, name == "model")',
}
DEVICE = DeviceInput(
    "gpu.example.com",
    {"model": {"string": "A100"}, "ver": {"version": "1.3.0"}, "slots": {"int": 7}},
    {"memory": {"value": "40Gi"}},
)


def per_second(work, seconds: float = 0.5) -> float:
    """Run something for a while and return how often it ran a second."""
    count, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        for _ in range(1000):
            work()
        count += 1000
    return count / took


def main() -> None:
    """Print a table."""
    environment = device_environment()
    print(f"{'selector':24} {'compile':>10} {'evaluate':>14}")
    for name, expression in EXPRESSIONS.items():
        began = time.perf_counter()
        for _ in range(50):
            program = environment.compile(expression)
        compiled = (time.perf_counter() - began) / 50
        rate = per_second(lambda: selects(program, DEVICE))  # noqa: B023 - used immediately
        print(f"{name:24} {compiled * 1e6:7.0f} us {rate / 1e6:8.2f} M/s")


if __name__ == "__main__":
    main()
