"""Downstream: a report of each week, made of what was published and of nothing else."""

from pathlib import Path

import dagster as dg

from dphist_pipeline.integrations.dagster import PublishedTable

PROJECT = Path(__file__).resolve().parents[2]
WEEKS = dg.WeeklyPartitionsDefinition("2026-01-05", day_offset=1, end_offset=-1)


@dg.asset(
    deps=[dg.AssetDep(["weekly_wards", "published"])],
    partitions_def=WEEKS,
    group_name="hospital",
    kinds={"markdown"},
    automation_condition=dg.AutomationCondition.eager(),
)
def ward_report(context: dg.AssetExecutionContext, wards: PublishedTable) -> dg.MaterializeResult[None]:
    """Wards of a week with their intervals, as Markdown."""
    week = context.partition_key
    lines = [f"# Visits in the week of {week}", "", "| ward | visits | 95 % interval |", "|---|---:|---:|"]
    for row in wards.frame(week).iter_rows(named=True):
        lines.append(f"| {row['ward']} | {row['estimate']:,.0f} | {row['ci_lower']:,.0f} to {row['ci_upper']:,.0f} |")
    total = wards.published(week).answer()
    # A sum is told by its unbiased estimate, which the interval belongs to.
    lines += ["", f"All wards: {total.unbiased:,.0f} ({total.ci_lower:,.0f} to {total.ci_upper:,.0f})."]
    file = PROJECT / "reports" / f"{week}.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return dg.MaterializeResult(metadata={"report": dg.MetadataValue.md("\n".join(lines)), "total": total.unbiased})


@dg.definitions
def resources() -> dg.Definitions:
    """The report and the published tables that it reads."""
    return dg.Definitions(assets=[ward_report], resources={"wards": PublishedTable(release="weekly_wards")})
