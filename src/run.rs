//! One run from start to report: plan, drive, inject, drain, settle, judge.
