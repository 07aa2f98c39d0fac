"""Areas of a design by path, in gate equivalents, from what hardware/synthesis/run has Yosys write.

    areas.py TREE.json STAT.txt LIBERTY TOP [--json] [NAME=VALUE]...

TREE.json is the design before mapping (instances, sizes of memories), STAT.txt Yosys' statistics
after it (cells of each module). One GE is the area of NAND2X1.

A memory is no cell. Its area is a fit, and is called one: 0.48 GE a bit for the array and 92 GE for
each square root of a bit for what stands at its edges. The shape comes from the paper's own
alternatives (section 7.2.3: a PLB of 64 KB adds 29 %, 2^20 entries on chip more than 10x).
"""

import json
import math
import re
import sys

GE_PER_BIT = 0.48
GE_PER_EDGE = 92.0

# Which row of Table 3 the cells of a module count to, with all below it that names no other row.
ROWS = {
    "frontend": "Misc",
    "prf": "Misc",
    "posmap": "PosMap",
    "counters": "PosMap",
    "backlog": "PosMap",
    "plb": "PLB",
    "pmmac": "PMMAC",
    "backend": "Stash",
    "stash": "Stash",
    "evict": "Stash",
    "address": "Stash",
    "aes": "AES",
    "aes_key": "AES",
}
FRONTEND = ("PosMap", "PLB", "PMMAC", "Misc")

# Table 3: shares of the total area in percent after synthesis, for 1, 2 and 4 channels.
PAPER = {
    "Frontend": (31.2, 30.0, 22.5),
    "PosMap": (7.3, 7.0, 5.3),
    "PLB": (10.2, 9.7, 7.3),
    "PMMAC": (12.4, 11.9, 8.8),
    "Misc": (1.3, 1.4, 1.1),
    "Stash": (28.3, 28.9, 21.9),
    "AES": (40.5, 41.1, 55.6),
}


def cell_areas(liberty):
    """Area of each cell of a Liberty file, in the file's unit."""
    text = open(liberty, encoding="utf-8").read()
    return {
        name: float(area)
        for name, area in re.findall(r"cell\s*\((\w+)\)\s*\{.*?area\s*:\s*([\d.]+)", text, re.S)
    }


def mapped_cells(stat):
    """How many cells of each type each mapped module has by itself, from `stat`."""
    modules, current = {}, None
    for line in open(stat, encoding="utf-8"):
        if heading := re.match(r"=== (.*) ===", line):
            name = heading[1].removeprefix("\\")
            current = modules.setdefault(name, {}) if name != "design hierarchy" else None
        elif current is not None and (count := re.match(r" {5}(\S+) +(\d+)$", line)):
            current[count[1].removeprefix("\\")] = int(count[2])
    return modules


def number(bits):
    """A parameter of Yosys' JSON: a string of binary digits."""
    return int(bits, 2)


class Design:
    """Areas of a synthesised design, found by walking its instances."""

    def __init__(self, tree, stat, liberty):
        self.modules = json.load(open(tree, encoding="utf-8"))["modules"]
        areas = cell_areas(liberty)
        self.own = {}
        for module, cells in mapped_cells(stat).items():
            for cell in cells:
                # A cell that is neither a gate nor a block would count as nothing.
                if cell not in areas and cell not in self.modules:
                    sys.exit(f"areas.py: {module} holds {cell}, which has no area")
                if areas.get(cell) == 0:
                    sys.exit(f"areas.py: {module} holds {cell}, whose area is not known")
            total = sum(areas[cell] * count for cell, count in cells.items() if cell in areas)
            self.own[module] = total / areas["NAND2X1"]
        self.paths = []

    def name(self, module):
        """What the source calls a module; Yosys adds parameters to the name."""
        name = self.modules[module]["attributes"].get("hdlname", module)
        return name.removeprefix("\\")

    def walk(self, module, path, row):
        """Adds the instance at `path` and all below it to `paths`; gives their total in GE."""
        row = ROWS.get(self.name(module), row)
        entry = {"path": path, "module": self.name(module), "row": row, "bits": 0, "memory": 0.0}
        # What dissolved in its user has no cells of its own, and no line.
        if module in self.own:
            self.paths.append(entry)
        entry["own"] = self.own.get(module, 0.0)
        total = entry["own"]
        for instance, cell in self.modules[module]["cells"].items():
            below = self.modules.get(cell["type"])
            if below is None:
                continue
            if self.name(cell["type"]) == "ram":
                total += self.memory(f"{path}/{instance}", row, below, cell)
            else:
                total += self.walk(cell["type"], f"{path}/{instance}", row)
        entry["total"] = total
        return total

    def memory(self, path, row, module, cell):
        """Adds a memory; gives its fitted area in GE."""
        sizes = {**module["parameter_default_values"], **cell["parameters"]}
        bits = number(sizes["WIDTH"]) * number(sizes["DEPTH"])
        area = GE_PER_BIT * bits + GE_PER_EDGE * math.sqrt(bits)
        self.paths.append(
            {
                "path": path,
                "module": "ram",
                "row": row,
                "bits": bits,
                "memory": area,
                "own": 0.0,
                "total": area,
            }
        )
        return area


def rows(paths):
    """GE of each row of Table 3, and of what belongs to none."""
    sums = {}
    for entry in paths:
        sums[entry["row"]] = sums.get(entry["row"], 0.0) + entry["own"] + entry["memory"]
    if any(row in sums for row in FRONTEND):
        sums["Frontend"] = sum(sums.get(row, 0.0) for row in FRONTEND)
    return sums


def print_paths(paths, total):
    """The areas by path, the largest first. Equal instances (a pipeline's S-boxes) share a line."""
    merged = {}
    for entry in paths:
        key = (re.sub(r"\[\d+\]", "[]", entry["path"]), entry["module"], round(entry["total"], 3))
        merged.setdefault(key, [entry, 0])[1] += 1
    print(f"{'GE':>10} {'%':>6} {'own GE':>10} {'bits':>8} {'x':>4}  path (module)")
    for (path, module, _), (entry, count) in sorted(
        merged.items(), key=lambda item: -item[1][0]["total"] * item[1][1]
    ):
        area, own = entry["total"] * count, entry["own"] * count
        share = 100 * area / total
        bits = entry["bits"] * count
        print(f"{area:10.0f} {share:6.1f} {own:10.0f} {bits:8} {count:4}  {path} ({module})")


def print_rows(sums, total, channels):
    """The breakdown of Table 3, beside the paper's where that has one for so many channels."""
    column = {1: 0, 2: 1, 4: 2}.get(channels)
    print(f"\n{'row':10} {'GE':>10} {'%':>6} {'paper %':>8}")
    for row in [*PAPER, "rest"]:
        area = sums.get(row, 0.0)
        paper = f"{PAPER[row][column]:8.1f}" if row in PAPER and column is not None else ""
        print(f"{row:10} {area:10.0f} {100 * area / total:6.1f} {paper:>8}")


def main():
    words = [word for word in sys.argv[1:] if word != "--json"]
    tree, stat, liberty, top = words[:4]
    parameters = dict(word.split("=", 1) for word in words[4:])
    design = Design(tree, stat, liberty)
    total = design.walk(top, top, "rest")
    sums = rows(design.paths)
    memory = sum(entry["memory"] for entry in design.paths)
    if "--json" in sys.argv:
        answer = {
            "top": top,
            "parameters": parameters,
            "ge": total,
            "logic_ge": total - memory,
            "memory_ge": memory,
            "memory_bits": sum(entry["bits"] for entry in design.paths),
            "rows": sums,
            "paths": design.paths,
        }
        print(json.dumps(answer, indent=1))
        return
    print_paths(design.paths, total)
    print(f"\ntotal {total:.0f} GE: logic {total - memory:.0f}, memories (a fit) {memory:.0f}")
    if set(sums) > {"rest"} and top not in ROWS:
        print_rows(sums, total, int(parameters.get("NCHANNEL", 0)))


if __name__ == "__main__":
    main()
