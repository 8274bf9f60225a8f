"""What every path returns to whom: read off the CSV files of the two exports by hand, independent of the service."""

from __future__ import annotations

from dataclasses import dataclass

SPR_ORGS = "spr-district spr-elementary spr-high spr-high-science"
SHV_ORGS = "shv-campus shv-district shv-north shv-south"
SPR_SESSIONS = "spr-2027 spr-2027-fall spr-2027-q1 spr-2027-q2 spr-2027-q3 spr-2027-spring spr-2027-summer"
SPR_TERMS = "spr-2027-fall spr-2027-spring spr-2027-summer"
SPR_PERIODS = "spr-2027-q1 spr-2027-q2 spr-2027-q3"
SPR_COURSES = "spr-course-chem spr-course-homeroom spr-course-math3 spr-course-stats"
SPR_CLASSES = "spr-class-chem-1 spr-class-chem-summer spr-class-homeroom-3 spr-class-math3-a spr-class/stats@1"
SHV_CLASSES = "shv-class-art-n shv-class-bio-n shv-class-bio-s"
SPR_STUDENTS = "spr-student-1 spr-student-2 spr-student-3 spr-student-4 spr-student-5 spr-student-6"
SHV_STUDENTS = "shv-student-1 shv-student-2 shv-student-3 shv-student-4"
SPR_STAFF = "spr-admin-district spr-admin-school spr-aide-1 spr-proctor@1 spr-teacher-1 spr-teacher-2"
SHV_STAFF = (
    "shv-coach-1 shv-counselor-1 shv-districtadmin-1 shv-guardian-1 shv-principal-1 shv-sysadmin-1 shv-teacher-1"
)
# Who is nothing but a guardian. shv-guardian-1 also helps in a class, and is seen there by everyone.
GUARDIANS = frozenset({"spr-guardian-1", "spr-parent-1", "spr-relative-1"})
SPR_ENROLLMENTS = " ".join(f"spr-enr-{number:02}" for number in range(1, 18))
SHV_ENROLLMENTS = " ".join(f"shv-enr-{number}" for number in range(1, 10))
ELEMENTARY_ENROLLMENTS = " ".join(f"spr-enr-{number:02}" for number in range(1, 9))
ELEMENTARY_STUDENTS = "spr-student-1 spr-student-2 spr-student-6"


@dataclass(frozen=True)
class Row:
    """A collection: what vendors of each district get, and the vendor who may see spr-elementary alone."""

    path: str
    springfield: str = ""
    shelbyville: str = ""
    elementary: str = ""
    # What 1.1 shows in words of the path, and 1.2 in words of its own.
    shelbyville_in_1_1: str = ""

    def ids(self, vendor: str, version: str) -> list[str]:
        """The ids that a vendor gets, in the default order."""
        shelbyville = self.shelbyville if version == "v1p2" else f"{self.shelbyville} {self.shelbyville_in_1_1}"
        parts = {
            "both": f"{self.springfield} {shelbyville}",
            "springfield": self.springfield,
            "elementary": self.elementary,
        }
        return sorted(parts[vendor].split())


# The collections that have single records below them.
LISTED = (
    Row("/orgs", SPR_ORGS, SHV_ORGS, "spr-district spr-elementary"),
    Row("/schools", "spr-elementary spr-high", "shv-north shv-south", "spr-elementary"),
    Row(
        "/academicSessions",
        SPR_SESSIONS,
        "shv-2027 shv-2027-camp shv-2027-t1 shv-2027-t1-gp shv-2027-t2",
        SPR_SESSIONS,
    ),
    Row("/terms", SPR_TERMS, "shv-2027-t1 shv-2027-t2", SPR_TERMS, shelbyville_in_1_1="shv-2027-camp"),
    Row("/gradingPeriods", SPR_PERIODS, "shv-2027-t1-gp", SPR_PERIODS),
    Row(
        "/courses",
        SPR_COURSES,
        "shv-course-art shv-course-bio",
        # The district's courses, and none that another school offers.
        "spr-course-chem spr-course-homeroom spr-course-math3",
    ),
    Row("/classes", SPR_CLASSES, SHV_CLASSES, "spr-class-homeroom-3 spr-class-math3-a"),
    Row(
        "/users",
        f"{SPR_STUDENTS} {SPR_STAFF} {' '.join(GUARDIANS)}",
        f"{SHV_STUDENTS} {SHV_STAFF}",
        f"{ELEMENTARY_STUDENTS} spr-aide-1 spr-guardian-1 spr-parent-1 spr-teacher-1",
    ),
    Row("/students", SPR_STUDENTS, SHV_STUDENTS, ELEMENTARY_STUDENTS),
    Row("/teachers", "spr-teacher-1 spr-teacher-2", "shv-teacher-1", "spr-teacher-1"),
    Row("/enrollments", SPR_ENROLLMENTS, SHV_ENROLLMENTS, ELEMENTARY_ENROLLMENTS),
    Row("/demographics", SPR_STUDENTS, SHV_STUDENTS, ELEMENTARY_STUDENTS),
)

# The collections of a parent; the last rows of each group name a parent of another kind, which has none.
NESTED = (
    Row("/schools/spr-elementary/terms", SPR_TERMS, "", SPR_TERMS),
    Row("/schools/spr-high/terms", SPR_TERMS),
    Row("/schools/shv-north/terms", "", "shv-2027-t1 shv-2027-t2", shelbyville_in_1_1="shv-2027-camp"),
    Row("/schools/shv-south/terms", "", "shv-2027-t1"),
    Row("/schools/spr-district/terms"),
    Row("/terms/spr-2027-fall/gradingPeriods", "spr-2027-q1 spr-2027-q2", "", "spr-2027-q1 spr-2027-q2"),
    Row("/terms/spr-2027-spring/gradingPeriods", "spr-2027-q3", "", "spr-2027-q3"),
    Row("/terms/spr-2027-summer/gradingPeriods"),
    Row("/terms/shv-2027-t1/gradingPeriods", "", "shv-2027-t1-gp"),
    Row("/terms/spr-2027/gradingPeriods"),
    Row(
        "/schools/spr-elementary/courses",
        "spr-course-homeroom spr-course-math3",
        "",
        "spr-course-homeroom spr-course-math3",
    ),
    Row("/schools/spr-high/courses", "spr-course-chem spr-course-stats"),
    Row("/schools/shv-north/courses", "", "shv-course-art shv-course-bio"),
    Row("/schools/shv-south/courses", "", "shv-course-bio"),
    Row("/schools/spr-district/courses"),
    Row("/courses/spr-course-math3/classes", "spr-class-math3-a", "", "spr-class-math3-a"),
    Row("/courses/spr-course-chem/classes", "spr-class-chem-1 spr-class-chem-summer"),
    Row("/courses/shv-course-bio/classes", "", "shv-class-bio-n shv-class-bio-s"),
    Row(
        "/schools/spr-elementary/classes",
        "spr-class-homeroom-3 spr-class-math3-a",
        "",
        "spr-class-homeroom-3 spr-class-math3-a",
    ),
    Row("/schools/spr-high/classes", "spr-class-chem-1 spr-class-chem-summer spr-class/stats@1"),
    Row("/schools/shv-north/classes", "", "shv-class-art-n shv-class-bio-n"),
    Row("/schools/shv-campus/classes"),
    Row("/terms/spr-2027-fall/classes", "spr-class-math3-a spr-class/stats@1", "", "spr-class-math3-a"),
    Row("/terms/spr-2027-spring/classes", "spr-class-chem-1 spr-class-math3-a", "", "spr-class-math3-a"),
    Row("/terms/shv-2027-t1/classes", "", "shv-class-bio-n shv-class-bio-s"),
    Row("/terms/shv-2027-t2/classes", "", "shv-class-bio-n"),
    Row("/terms/spr-2027/classes"),
    Row(
        "/students/spr-student-1/classes",
        "spr-class-homeroom-3 spr-class-math3-a",
        "",
        "spr-class-homeroom-3 spr-class-math3-a",
    ),
    Row("/students/spr-student-3/classes", "spr-class/stats@1"),
    # Enrolled at both schools: whoever sees one of them sees that part.
    Row("/students/spr-student-6/classes", "spr-class-chem-summer spr-class-math3-a", "", "spr-class-math3-a"),
    Row("/students/shv-student-3/classes", "", "shv-class-art-n shv-class-bio-s"),
    Row("/students/spr-teacher-1/classes"),
    Row(
        "/teachers/spr-teacher-1/classes",
        "spr-class-homeroom-3 spr-class-math3-a spr-class/stats@1",
        "",
        "spr-class-homeroom-3 spr-class-math3-a",
    ),
    Row("/teachers/spr-teacher-2/classes", "spr-class-chem-1 spr-class/stats@1"),
    Row("/teachers/shv-teacher-1/classes", "", "shv-class-bio-n shv-class-bio-s"),
    Row("/teachers/spr-student-1/classes"),
    Row("/users/spr-aide-1/classes", "spr-class-homeroom-3", "", "spr-class-homeroom-3"),
    Row("/users/spr-proctor@1/classes", "spr-class-chem-1"),
    Row("/users/spr-admin-district/classes", "spr-class-chem-1"),
    Row("/users/shv-guardian-1/classes", "", "shv-class-art-n"),
    Row("/users/spr-guardian-1/classes"),
    Row("/schools/spr-elementary/students", ELEMENTARY_STUDENTS, "", ELEMENTARY_STUDENTS),
    # spr-student-6 takes a summer class there.
    Row("/schools/spr-high/students", "spr-student-3 spr-student-4 spr-student-5 spr-student-6"),
    Row("/schools/shv-north/students", "", "shv-student-1 shv-student-2 shv-student-3"),
    Row("/schools/shv-district/students"),
    Row("/schools/spr-elementary/teachers", "spr-teacher-1", "", "spr-teacher-1"),
    Row("/schools/spr-high/teachers", "spr-teacher-1 spr-teacher-2"),
    Row("/schools/shv-south/teachers", "", "shv-teacher-1"),
    Row("/schools/spr-high-science/teachers"),
    Row("/classes/spr-class-math3-a/students", ELEMENTARY_STUDENTS, "", ELEMENTARY_STUDENTS),
    Row("/classes/spr-class%2Fstats@1/students", "spr-student-3 spr-student-5"),
    Row("/classes/shv-class-bio-n/students", "", "shv-student-1 shv-student-2"),
    Row("/classes/spr-class-math3-a/teachers", "spr-teacher-1", "", "spr-teacher-1"),
    Row("/classes/spr-class%2Fstats@1/teachers", "spr-teacher-1 spr-teacher-2"),
    Row("/classes/shv-class-art-n/teachers"),
    Row(
        "/schools/spr-elementary/classes/spr-class-homeroom-3/students",
        "spr-student-1 spr-student-2",
        "",
        "spr-student-1 spr-student-2",
    ),
    Row("/schools/spr-high/classes/spr-class-chem-1/students", "spr-student-4"),
    Row("/schools/shv-north/classes/shv-class-art-n/students", "", "shv-student-3"),
    Row("/schools/spr-high/classes/spr-class-homeroom-3/students"),
    Row("/schools/spr-elementary/classes/spr-class-math3-a/teachers", "spr-teacher-1", "", "spr-teacher-1"),
    Row("/schools/spr-high/classes/spr-class%2Fstats@1/teachers", "spr-teacher-1 spr-teacher-2"),
    Row("/schools/shv-south/classes/shv-class-bio-s/teachers", "", "shv-teacher-1"),
    Row("/schools/shv-south/classes/shv-class-bio-n/teachers"),
    Row("/schools/spr-elementary/enrollments", ELEMENTARY_ENROLLMENTS, "", ELEMENTARY_ENROLLMENTS),
    Row("/schools/spr-high/enrollments", " ".join(f"spr-enr-{number:02}" for number in range(9, 18))),
    Row("/schools/shv-north/enrollments", "", "shv-enr-1 shv-enr-2 shv-enr-3 shv-enr-7 shv-enr-8"),
    Row("/schools/spr-district/enrollments"),
    Row(
        "/schools/spr-elementary/classes/spr-class-math3-a/enrollments",
        "spr-enr-01 spr-enr-02 spr-enr-03 spr-enr-04",
        "",
        "spr-enr-01 spr-enr-02 spr-enr-03 spr-enr-04",
    ),
    Row("/schools/spr-high/classes/spr-class-chem-1/enrollments", "spr-enr-13 spr-enr-14 spr-enr-15 spr-enr-16"),
    Row("/schools/shv-south/classes/shv-class-bio-s/enrollments", "", "shv-enr-4 shv-enr-5 shv-enr-6 shv-enr-9"),
    Row("/schools/spr-elementary/classes/spr-class-chem-1/enrollments"),
)
