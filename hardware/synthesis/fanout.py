"""Gives each net of a mapped netlist at most 8 readers, by trees of buffers.

    fanout.py NETLIST.json TOP

NETLIST.json is what Yosys writes of a flat design in osu018's cells, and is replaced. abc's `buffer`
leaves the outputs of some flip-flops with hundreds of readers, whose delay then is one of nothing
but fan-out. The clock is ideal and stays as it is.
"""

import json
import sys

READERS = 8
BUFFER = "BUFX4"
OUTPUTS = ("Y", "Q", "YC", "YS")


def main():
    path, top = sys.argv[1:]
    design = json.load(open(path, encoding="utf-8"))
    module = design["modules"][top]
    cells = module["cells"]
    readers = {}
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if port not in OUTPUTS and port != "CLK":
                for at, bit in enumerate(bits):
                    if isinstance(bit, int):
                        readers.setdefault(bit, []).append((name, port, at))
    bits = [bit for port in module["ports"].values() for bit in port["bits"]]
    bits += [bit for cell in cells.values() for all in cell["connections"].values() for bit in all]
    last = max(bit for bit in bits if isinstance(bit, int))
    buffers = 0
    for bit, pins in readers.items():
        while len(pins) > READERS:
            above = []
            for first in range(0, len(pins), READERS):
                last += 1
                buffers += 1
                name = f"fanout_{buffers}"
                cells[name] = {
                    "hide_name": 0,
                    "type": BUFFER,
                    "parameters": {},
                    "attributes": {},
                    "port_directions": {"A": "input", "Y": "output"},
                    "connections": {"A": [bit], "Y": [last]},
                }
                for cell, port, at in pins[first : first + READERS]:
                    cells[cell]["connections"][port][at] = last
                above.append((name, "A", 0))
            pins = above
    with open(path, "w", encoding="utf-8") as out:
        json.dump(design, out)


if __name__ == "__main__":
    main()
