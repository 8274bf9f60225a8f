SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
INSERT INTO public.academic_sessions VALUES
	('shv-2027', 1, 'active', '2026-11-30 04:33:27.713+00', 'School Year 2026-2027', '2026-09-01', '2027-06-30', 'schoolYear', NULL, '2027', 2231069184040043047),
	('shv-2027-t1', 1, 'active', '2026-11-30 04:33:27.713+00', 'Trimester 1', '2026-09-01', '2026-12-12', 'term', 'shv-2027', '2027', 2443385447534877393),
	('shv-2027-t2', 1, 'active', '2026-11-30 04:33:27.713+00', 'Trimester 2', '2026-12-14', '2027-03-20', 'term', 'shv-2027', '2027', 2295596216416639593),
	('shv-2027-t1-gp', 1, 'active', '2026-11-30 04:33:27.713+00', 'Report Card 1', '2026-09-01', '2026-10-31', 'gradingPeriod', 'shv-2027-t1', '2027', 3318724029856695517),
	('shv-2027-camp', 1, 'active', '2026-11-30 04:33:27.713+00', 'Winter Camp', '2026-12-27', '2026-12-31', 'ext:camp', NULL, '2027', 2538022962048904658),
	('spr-2027', 2, 'active', '2026-11-30 04:33:28.56+00', 'School Year 2026-2027', '2026-08-17', '2027-06-12', 'schoolYear', NULL, '2027', 3764849378801949168),
	('spr-2027-fall', 2, 'active', '2026-11-30 04:33:28.56+00', 'Fall Semester', '2026-08-17', '2027-01-16', 'semester', 'spr-2027', '2027', 1454475633852489396),
	('spr-2027-q1', 2, 'active', '2026-11-30 04:33:28.56+00', 'Quarter 1', '2026-08-17', '2026-10-24', 'gradingPeriod', 'spr-2027-fall', '2027', 8922116727137400351),
	('spr-2027-q2', 2, 'active', '2026-11-30 04:33:28.56+00', 'Quarter 2', '2026-10-26', '2027-01-16', 'gradingPeriod', 'spr-2027-fall', '2027', 7283538608999953547),
	('spr-2027-q3', 2, 'active', '2026-11-30 04:33:28.56+00', 'Quarter 3', '2027-01-19', '2027-03-27', 'gradingPeriod', 'spr-2027-spring', '2027', 2889419200795816398),
	('spr-2027-spring', 2, 'active', '2026-11-30 04:33:28.56+00', 'Spring Semester', '2027-01-19', '2027-06-12', 'semester', 'spr-2027', '2027', 5800509309624031411),
	('spr-2027-summer', 2, 'active', '2026-11-30 04:33:28.56+00', 'Summer Term', '2027-06-21', '2027-07-31', 'term', 'spr-2027', '2027', 5201717467062074323);
INSERT INTO public.vendors VALUES
	(2, 'springfield', 'springfield@vendors.example', true, 4, 'f9b10982-e9ab-43f2-ae75-385119a79d64', '2026-11-30 04:33:28.774+00', '$argon2id$v=19$m=19456,t=2,p=1$ZYH2ME0Zm/Im77n8V2ASyw$HboWx9fGyuYa58sHRlf+iiZjU/F1cU7DURnNx3QDqXA', '{contacts}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:31.186+00', false),
	(1, 'both', 'both@vendors.example', true, 5, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', '2026-11-30 04:33:28.774+00', '$argon2id$v=19$m=19456,t=2,p=1$6WcdkmmG+2WWsbDaNsu4Zw$DYMXhZPmtq80HSbHgRRS/CrkKEEaCEtJa6rnj+PTQmQ', '{contacts}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:28.944+00', true),
	(3, 'elementary', 'elementary@vendors.example', true, 3, '371d178b-f37b-4390-80f9-5e5b222dcf2b', '2026-11-30 04:33:28.774+00', '$argon2id$v=19$m=19456,t=2,p=1$eocUsf2fUTyrskjegDt/Cg$+sxPN3FD/VI3Jna0tBBTzbmwWZLyVdUk54oLM8SVd3w', '{contacts}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:29.253+00', false),
	(4, 'north', 'north@vendors.example', true, 3, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207', '2026-11-30 04:33:28.774+00', '$argon2id$v=19$m=19456,t=2,p=1$lUKcMrL3F3VUYgbShMBgQA$D1k9KAW9fz6G6xa/VVYRmq/ZZq32Sou0QeCZAsuSekY', '{contacts}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:29.418+00', false),
	(6, 'nobody', 'nobody@vendors.example', true, 2, 'b8c54365-d8d7-4c37-9ea4-e539d83dff21', '2026-11-30 04:33:28.774+00', '$argon2id$v=19$m=19456,t=2,p=1$1mwRwW/oEW+xDBBZiml0XQ$emqZxJKsrhLXNaKdLd7qyUiUX3bUZj/4kWEMhTMbgnU', '{contacts}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:29.687+00', false),
	(5, 'south', 'south@vendors.example', true, 6, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', '2026-11-30 04:33:28.774+00', '$argon2id$v=19$m=19456,t=2,p=1$GQHbSRo0QncD7Hx6i5e1Ow$aA2bGYqEWXJxfwDeuA5xFBYXzAa9Fh+k0PUv4Rl2Cf0', '{contacts}', NULL, NULL, NULL, NULL, NULL, NULL, '{phone}', '2026-11-30 04:33:30.926+00', true);
INSERT INTO public.agreements VALUES
	(2, 'Reading', 'Books', '{names,classes}', '{}', '{roster-core.readonly,roster.readonly}', '{enrollments}', '{}', '{spr-district}', '{}', 'UTC', '2026-01-01 00:00:00+00', '2126-01-02 00:00:00+00', NULL, NULL, 'privacy@v.example', '', '', 'at the end', '');
INSERT INTO public.api_keys VALUES
	('\xc5f71f23c56e5edfb6bf5aebe7b73b62bd6954aefe2764265ca2a4f482e36573', 1, 'key-44c75f4d', '2026-11-30 04:33:28.774+00', NULL),
	('\x26da5dbbe6ab1e4d3e7a2c8c7f9e63bb351ff2bbe95a8b7385d31dc82e39c30c', 2, 'key-d79fc895', '2026-11-30 04:33:28.774+00', NULL),
	('\x5f0f454e0ed5219dc9e8ac13076bebc9bbcc190ec6f0326eab4520de0389ceba', 3, 'key-f92d5db6', '2026-11-30 04:33:28.774+00', NULL),
	('\x1750cbc887283eef8dba0daa3c66358199054a96196b2a6e01abb1e6c83ad876', 4, 'key-54e806f2', '2026-11-30 04:33:28.774+00', NULL),
	('\x8d579c9b99cbee1e9bf8b903c1517e7c75cc75fc790fb14a13a98273bb2fc0e6', 5, 'key-6b6179b4', '2026-11-30 04:33:28.774+00', NULL),
	('\x546f2f76193d7c652c1a2f8fef41be785d83886d0d27b856bde226aae3513732', 6, 'key-dd18feb0', '2026-11-30 04:33:28.774+00', NULL);
INSERT INTO public.changes VALUES
	(1, '2026-11-30 04:33:26.942+00', 'system user', 'roster@host', 'feed add', 'feed', 'shelbyville', NULL, 'shelbyville', NULL, '{"path": null, "state": "added", "format": "oneroster", "marker": null, "strict": false, "enabled": true, "words_md5": null, "pause_from": null, "pause_until": null, "pause_reason": null, "hold_changes_percent": null, "hold_rejected_percent": null, "hold_tombstones_percent": null}', NULL, NULL),
	(2, '2026-11-30 04:33:27.945+00', 'system user', 'roster@host', 'feed add', 'feed', 'springfield', NULL, 'springfield', NULL, '{"path": null, "state": "added", "format": "oneroster", "marker": null, "strict": false, "enabled": true, "words_md5": null, "pause_from": null, "pause_until": null, "pause_reason": null, "hold_changes_percent": null, "hold_rejected_percent": null, "hold_tombstones_percent": null}', NULL, NULL),
	(3, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor add', 'vendor', 'both@vendors.example', 'both@vendors.example', NULL, NULL, '{"keys": {"key-44c75f4d": null}, "name": "both", "flags": [], "grants": [], "limits": {"burst": null, "rostering_burst": null, "requests_per_day": null, "rostering_at_once": null, "requests_per_second": null, "rostering_requests_per_second": null}, "number": 1, "enabled": true, "withheld": null}', NULL, NULL),
	(4, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'both@vendors.example', 'both@vendors.example', NULL, '{"flags": []}', '{"flags": ["contacts"]}', NULL, NULL),
	(5, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'both@vendors.example', 'both@vendors.example', NULL, '{"grants": []}', '{"grants": [["spr-district", null]]}', NULL, NULL),
	(6, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'both@vendors.example', 'both@vendors.example', NULL, '{"grants": [["spr-district", null]]}', '{"grants": [["shv-district", null], ["spr-district", null]]}', NULL, NULL),
	(7, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'client add', 'client', 'client-7e62159d3ded119b', 'both@vendors.example', NULL, NULL, '{"name": "tests", "oauth1": false, "scopes": ["v1p1/roster-core.readonly", "v1p1/roster.readonly", "v1p1/roster-demographics.readonly", "v1p1/guardians.readonly", "v1p1/guardians-metadata.readonly", "v1p1/students-metadata.readonly", "v1p1/demographic-metadata.readonly", "v1p1/orgs-metadata.readonly", "v1p2/roster-core.readonly", "v1p2/roster.readonly", "v1p2/roster-demographics.readonly", "v1p2/guardians.readonly", "v1p2/guardians-metadata.readonly", "v1p2/students-metadata.readonly", "v1p2/demographic-metadata.readonly", "v1p2/orgs-metadata.readonly"], "enabled": true, "secret_expires_at": null, "previous_secret_ends_at": null}', NULL, NULL),
	(8, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor add', 'vendor', 'springfield@vendors.example', 'springfield@vendors.example', NULL, NULL, '{"keys": {"key-d79fc895": null}, "name": "springfield", "flags": [], "grants": [], "limits": {"burst": null, "rostering_burst": null, "requests_per_day": null, "rostering_at_once": null, "requests_per_second": null, "rostering_requests_per_second": null}, "number": 2, "enabled": true, "withheld": null}', NULL, NULL),
	(9, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'springfield@vendors.example', 'springfield@vendors.example', NULL, '{"flags": []}', '{"flags": ["contacts"]}', NULL, NULL),
	(10, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'springfield@vendors.example', 'springfield@vendors.example', NULL, '{"grants": []}', '{"grants": [["spr-district", null]]}', NULL, NULL),
	(11, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'client add', 'client', 'client-bdad4409d1d98225', 'springfield@vendors.example', NULL, NULL, '{"name": "tests", "oauth1": false, "scopes": ["v1p1/roster-core.readonly", "v1p1/roster.readonly", "v1p1/roster-demographics.readonly", "v1p1/guardians.readonly", "v1p1/guardians-metadata.readonly", "v1p1/students-metadata.readonly", "v1p1/demographic-metadata.readonly", "v1p1/orgs-metadata.readonly", "v1p2/roster-core.readonly", "v1p2/roster.readonly", "v1p2/roster-demographics.readonly", "v1p2/guardians.readonly", "v1p2/guardians-metadata.readonly", "v1p2/students-metadata.readonly", "v1p2/demographic-metadata.readonly", "v1p2/orgs-metadata.readonly"], "enabled": true, "secret_expires_at": null, "previous_secret_ends_at": null}', NULL, NULL),
	(12, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor add', 'vendor', 'elementary@vendors.example', 'elementary@vendors.example', NULL, NULL, '{"keys": {"key-f92d5db6": null}, "name": "elementary", "flags": [], "grants": [], "limits": {"burst": null, "rostering_burst": null, "requests_per_day": null, "rostering_at_once": null, "requests_per_second": null, "rostering_requests_per_second": null}, "number": 3, "enabled": true, "withheld": null}', NULL, NULL),
	(13, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'elementary@vendors.example', 'elementary@vendors.example', NULL, '{"flags": []}', '{"flags": ["contacts"]}', NULL, NULL),
	(14, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'elementary@vendors.example', 'elementary@vendors.example', NULL, '{"grants": []}', '{"grants": [["spr-district", "spr-elementary"]]}', NULL, NULL),
	(15, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'client add', 'client', 'client-fb053f70a298abd3', 'elementary@vendors.example', NULL, NULL, '{"name": "tests", "oauth1": false, "scopes": ["v1p1/roster-core.readonly", "v1p1/roster.readonly", "v1p1/roster-demographics.readonly", "v1p1/guardians.readonly", "v1p1/guardians-metadata.readonly", "v1p1/students-metadata.readonly", "v1p1/demographic-metadata.readonly", "v1p1/orgs-metadata.readonly", "v1p2/roster-core.readonly", "v1p2/roster.readonly", "v1p2/roster-demographics.readonly", "v1p2/guardians.readonly", "v1p2/guardians-metadata.readonly", "v1p2/students-metadata.readonly", "v1p2/demographic-metadata.readonly", "v1p2/orgs-metadata.readonly"], "enabled": true, "secret_expires_at": null, "previous_secret_ends_at": null}', NULL, NULL),
	(16, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor add', 'vendor', 'north@vendors.example', 'north@vendors.example', NULL, NULL, '{"keys": {"key-54e806f2": null}, "name": "north", "flags": [], "grants": [], "limits": {"burst": null, "rostering_burst": null, "requests_per_day": null, "rostering_at_once": null, "requests_per_second": null, "rostering_requests_per_second": null}, "number": 4, "enabled": true, "withheld": null}', NULL, NULL),
	(17, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'north@vendors.example', 'north@vendors.example', NULL, '{"flags": []}', '{"flags": ["contacts"]}', NULL, NULL),
	(18, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'north@vendors.example', 'north@vendors.example', NULL, '{"grants": []}', '{"grants": [["shv-district", "shv-north"]]}', NULL, NULL),
	(19, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'client add', 'client', 'client-c21aa7e6e9d5db0b', 'north@vendors.example', NULL, NULL, '{"name": "tests", "oauth1": false, "scopes": ["v1p1/roster-core.readonly", "v1p1/roster.readonly", "v1p1/roster-demographics.readonly", "v1p1/guardians.readonly", "v1p1/guardians-metadata.readonly", "v1p1/students-metadata.readonly", "v1p1/demographic-metadata.readonly", "v1p1/orgs-metadata.readonly", "v1p2/roster-core.readonly", "v1p2/roster.readonly", "v1p2/roster-demographics.readonly", "v1p2/guardians.readonly", "v1p2/guardians-metadata.readonly", "v1p2/students-metadata.readonly", "v1p2/demographic-metadata.readonly", "v1p2/orgs-metadata.readonly"], "enabled": true, "secret_expires_at": null, "previous_secret_ends_at": null}', NULL, NULL),
	(20, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor add', 'vendor', 'south@vendors.example', 'south@vendors.example', NULL, NULL, '{"keys": {"key-6b6179b4": null}, "name": "south", "flags": [], "grants": [], "limits": {"burst": null, "rostering_burst": null, "requests_per_day": null, "rostering_at_once": null, "requests_per_second": null, "rostering_requests_per_second": null}, "number": 5, "enabled": true, "withheld": null}', NULL, NULL),
	(21, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'south@vendors.example', 'south@vendors.example', NULL, '{"flags": []}', '{"flags": ["contacts"]}', NULL, NULL),
	(22, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'south@vendors.example', 'south@vendors.example', NULL, '{"grants": []}', '{"grants": [["shv-district", "shv-south"]]}', NULL, NULL),
	(23, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'client add', 'client', 'client-74f8f5416c667b98', 'south@vendors.example', NULL, NULL, '{"name": "tests", "oauth1": false, "scopes": ["v1p1/roster-core.readonly", "v1p1/roster.readonly", "v1p1/roster-demographics.readonly", "v1p1/guardians.readonly", "v1p1/guardians-metadata.readonly", "v1p1/students-metadata.readonly", "v1p1/demographic-metadata.readonly", "v1p1/orgs-metadata.readonly", "v1p2/roster-core.readonly", "v1p2/roster.readonly", "v1p2/roster-demographics.readonly", "v1p2/guardians.readonly", "v1p2/guardians-metadata.readonly", "v1p2/students-metadata.readonly", "v1p2/demographic-metadata.readonly", "v1p2/orgs-metadata.readonly"], "enabled": true, "secret_expires_at": null, "previous_secret_ends_at": null}', NULL, NULL),
	(24, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor add', 'vendor', 'nobody@vendors.example', 'nobody@vendors.example', NULL, NULL, '{"keys": {"key-dd18feb0": null}, "name": "nobody", "flags": [], "grants": [], "limits": {"burst": null, "rostering_burst": null, "requests_per_day": null, "rostering_at_once": null, "requests_per_second": null, "rostering_requests_per_second": null}, "number": 6, "enabled": true, "withheld": null}', NULL, NULL),
	(25, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'vendor grant', 'vendor', 'nobody@vendors.example', 'nobody@vendors.example', NULL, '{"flags": []}', '{"flags": ["contacts"]}', NULL, NULL),
	(26, '2026-11-30 04:33:28.774+00', 'system user', 'tester@tests', 'client add', 'client', 'client-9d9fc340ceb00124', 'nobody@vendors.example', NULL, NULL, '{"name": "tests", "oauth1": false, "scopes": ["v1p1/roster-core.readonly", "v1p1/roster.readonly", "v1p1/roster-demographics.readonly", "v1p1/guardians.readonly", "v1p1/guardians-metadata.readonly", "v1p1/students-metadata.readonly", "v1p1/demographic-metadata.readonly", "v1p1/orgs-metadata.readonly", "v1p2/roster-core.readonly", "v1p2/roster.readonly", "v1p2/roster-demographics.readonly", "v1p2/guardians.readonly", "v1p2/guardians-metadata.readonly", "v1p2/students-metadata.readonly", "v1p2/demographic-metadata.readonly", "v1p2/orgs-metadata.readonly"], "enabled": true, "secret_expires_at": null, "previous_secret_ends_at": null}', NULL, NULL),
	(27, '2026-11-30 04:33:30.729+00', 'system user', 'roster@host', 'vendor grant', 'vendor', 'south@vendors.example', 'south@vendors.example', NULL, '{"grants": [["shv-district", "shv-south"]]}', '{"grants": [["shv-district", "shv-south"], ["spr-district", null, {"only": "grade 3", "staff": "all", "classes": null, "students": "grades~''03''", "guardians": true}]]}', NULL, NULL),
	(28, '2026-11-30 04:33:30.902+00', 'system user', 'roster@host', 'vendor set-withheld', 'vendor', 'south@vendors.example', 'south@vendors.example', NULL, '{"withheld": null}', '{"withheld": ["phone"]}', NULL, NULL),
	(30, '2026-11-30 04:33:31.107+00', 'system user', 'roster@host', 'agreement set', 'agreement', 'springfield@vendors.example', 'springfield@vendors.example', NULL, NULL, '{"link": "", "zone": "UTC", "title": "Reading", "address": "", "contact": "privacy@v.example", "purpose": "Books", "schools": [], "deletion": "at the end", "elements": ["names", "classes"], "last_day": "2126-01-01", "districts": ["spr-district"], "first_day": "2026-01-01", "metadata_keys": [], "subcontractors": ""}', NULL, NULL),
	(31, '2026-11-30 04:33:31.25+00', 'system user', 'roster@host', 'person hide', 'person', 'aeac885378c9769c', 'both@vendors.example', NULL, '{"kept_from": []}', '{"kept_from": ["both@vendors.example"]}', NULL, NULL),
	(32, '2026-11-30 04:33:31.366+00', 'system user', 'roster@host', 'deletion ask', 'deletion request', 'springfield@vendors.example', 'springfield@vendors.example', NULL, '{"1": null}', '{"1": "due 2126-01-01, answered not yet"}', NULL, NULL),
	(33, '2026-11-30 04:33:31.444+00', 'system user', 'roster@host', 'person hide', 'person', '8d21f66652f831fe', NULL, NULL, NULL, '{"kind": "hidden"}', NULL, NULL),
	(34, '2026-11-30 04:33:31.707+00', 'system user', 'roster@host', 'operator add', 'operator', 'owner@district.example', NULL, NULL, NULL, '{"name": "Owner", "role": "owner", "enabled": true, "has_link": true, "has_codes": false, "has_password": false}', NULL, NULL);
INSERT INTO public.classes VALUES
	('shv-class-bio-n', 1, 'active', '2026-11-30 04:33:27.713+00', 'Biology North', 'BIO-N', 'scheduled', 'N-101', '{09}', 'shv-course-bio', 'shv-north', '{shv-2027-t1,shv-2027-t2}', '{Biology}', '{03051}', '{1,3}', 8325249752251198404, 2, NULL, NULL),
	('shv-class-bio-s', 1, 'active', '2026-11-30 04:33:27.713+00', 'Biology South', NULL, 'ext:lab', NULL, '{10}', 'shv-course-bio', 'shv-south', '{shv-2027-t1}', NULL, NULL, NULL, 692132122423250788, 1, NULL, NULL),
	('shv-class-art-n', 1, 'active', '2026-11-30 04:33:27.713+00', 'Art & Design', NULL, 'homeroom', NULL, NULL, 'shv-course-art', 'shv-north', '{shv-2027-camp}', NULL, NULL, NULL, 7130658056599442235, 2, NULL, NULL),
	('spr-class-chem-1', 2, 'active', '2026-11-30 04:33:28.56+00', 'Chemistry: Acid'' AND ''Base', 'CHEM-1.1', 'scheduled', NULL, '{10}', 'spr-course-chem', 'spr-high', '{spr-2027-spring}', NULL, NULL, '{4}', 2422704110090362619, 16, NULL, NULL),
	('spr-class-chem-summer', 2, 'active', '2026-11-30 04:33:28.56+00', 'Chimie d''été', NULL, 'scheduled', NULL, NULL, 'spr-course-chem', 'spr-high', '{spr-2027-summer}', NULL, NULL, NULL, 4341256053150624319, 16, NULL, NULL),
	('spr-class-homeroom-3', 2, 'active', '2026-11-30 04:33:28.56+00', 'Homeroom "The Owls"', NULL, 'homeroom', NULL, '{03}', 'spr-course-homeroom', 'spr-elementary', '{spr-2027}', NULL, NULL, NULL, 1957713075596818885, 15, NULL, NULL),
	('spr-class-math3-a', 2, 'active', '2026-11-30 04:33:28.56+00', 'Mathematics 3 A', 'M3A', 'scheduled', 'Room 12', '{03}', 'spr-course-math3', 'spr-elementary', '{spr-2027-fall,spr-2027-spring}', '{Mathematics}', '{02033}', '{1,2}', 1211952758316283575, 15, NULL, NULL),
	('spr-class/stats@1', 2, 'active', '2026-11-30 04:33:28.56+00', '100%_sure: Statistics, Section 1', 'STAT-1.1', 'scheduled', 'Lab 2', '{11,12}', 'spr-course-stats', 'spr-high', '{spr-2027-fall}', '{"Probability and Statistics"}', '{02201}', '{3}', 7886174393770452652, 16, NULL, NULL);
INSERT INTO public.courses VALUES
	('shv-course-bio', 1, 'active', '2026-11-30 04:33:27.713+00', 'Biology', 'shv-2027', 'BIO', '{09,10}', 'shv-district', '{Biology}', '{03051}', 4424013144696914123, 13, NULL),
	('shv-course-art', 1, 'active', '2026-11-30 04:33:27.713+00', 'Art & Design', NULL, NULL, NULL, 'shv-north', NULL, NULL, 3162565615748817176, 14, NULL),
	('spr-course-chem', 2, 'active', '2026-11-30 04:33:28.56+00', 'Chemistry: Acid'' AND ''Base', NULL, 'CHEM-1', '{10}', 'spr-district', NULL, NULL, 6817068865391198030, 31, NULL),
	('spr-course-homeroom', 2, 'active', '2026-11-30 04:33:28.56+00', 'Homeroom', NULL, NULL, NULL, 'spr-district', NULL, NULL, 6805433467783999944, 31, NULL),
	('spr-course-math3', 2, 'active', '2026-11-30 04:33:28.56+00', 'Mathematics, Grade 3', 'spr-2027', 'MATH-3', '{03}', 'spr-district', '{Mathematics}', '{02033}', 7257503578773293724, 31, NULL),
	('spr-course-stats', 2, 'active', '2026-11-30 04:33:28.56+00', '100%_sure: Statistics', 'spr-2027', 'STAT-1', '{11,12}', 'spr-high', '{"Probability and Statistics",Mathematics}', '{02201,02999}', 1505453452533864123, 30, NULL);
INSERT INTO public.deletion_requests VALUES
	(1, 2, '\xeac23cddada7cd83dc56f4dd98acf896bbdb224c4df2f2672ddbe79c5fc367be', '2026-11-30', '2126-01-01', NULL, '');
INSERT INTO public.demographics VALUES
	('shv-student-1', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, '2012-02-29', 'other', false, false, false, false, true, false, false, 'US', 'IL', 'Shelbyville', '01652', 6618608032763693413, 7, NULL),
	('shv-student-2', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, '2012-03-01', 'unspecified', false, true, false, false, false, false, false, NULL, NULL, NULL, NULL, 4386120034392398607, 7, NULL),
	('shv-student-3', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'ext:notReported', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 353173853514977237, 4, NULL),
	('shv-student-4', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, '2011-01-01', 'male', false, false, false, false, false, false, true, 'MX', NULL, NULL, NULL, 4905068196208375374, 8, NULL),
	('spr-student-1', 2, 'active', '2026-11-30 04:33:28.56+00', '{"notes": "says \"hi\", often"}', '2018-02-28', 'female', false, false, false, false, true, false, false, 'US', 'IL', 'Springfield', '01652', 3023365714890858619, 18, NULL),
	('spr-student-2', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, '2018-02-28', 'male', false, false, false, false, true, false, true, 'IE', NULL, 'Baile Átha Cliath', NULL, 8471963515133467909, 18, NULL),
	('spr-student-3', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, '2010-12-31', 'male', false, true, false, false, false, false, false, 'CN', NULL, NULL, NULL, 3088382668071217441, 25, NULL),
	('spr-student-5', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'male', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5822115746779777809, 25, NULL),
	('spr-student-6', 2, 'tobedeleted', '2026-11-30 04:33:30.25+00', NULL, '2018-11-05', NULL, true, false, true, true, false, false, false, NULL, NULL, NULL, NULL, 7679271452484855531, 18, NULL);
INSERT INTO public.departures VALUES
	('users', 'spr-student-6', 23, 2, 'spr-student-6', '2026-11-30 04:33:30.25+00', 0, '', '', 0),
	('enrollments', 'spr-enr-17', 29, 2, 'spr-student-6', '2026-11-30 04:33:30.25+00', 0, '', '', 0),
	('demographics', 'spr-student-6', 23, 2, 'spr-student-6', '2026-11-30 04:33:30.25+00', 0, '', '', 0),
	('users', 'spr-student-3', 25, 2, 'spr-student-3', '2026-11-30 04:33:31.273+00', 0, '', '', 1),
	('enrollments', 'spr-enr-09', 29, 2, 'spr-student-3', '2026-11-30 04:33:31.273+00', 0, '', '', 1),
	('demographics', 'spr-student-3', 25, 2, 'spr-student-3', '2026-11-30 04:33:31.273+00', 0, '', '', 1);
INSERT INTO public.enrollments VALUES
	('shv-enr-3', 1, 'active', '2026-11-30 04:33:27.713+00', 'shv-teacher-1', 'shv-class-bio-n', 'shv-north', 'teacher', true, NULL, NULL, 7352571862740813436, 11, true, NULL),
	('shv-enr-2', 1, 'active', '2026-11-30 04:33:27.713+00', 'shv-student-2', 'shv-class-bio-n', 'shv-north', 'student', NULL, NULL, NULL, 5213854162684003587, 11, true, NULL),
	('shv-enr-1', 1, 'active', '2026-11-30 04:33:27.713+00', 'shv-student-1', 'shv-class-bio-n', 'shv-north', 'student', false, '2026-09-01', '2027-03-20', 8770119818194971445, 11, true, NULL),
	('shv-enr-6', 1, 'active', '2026-11-30 04:33:27.713+00', 'shv-teacher-1', 'shv-class-bio-s', 'shv-south', 'teacher', true, NULL, NULL, 6511449932254937686, 12, true, NULL),
	('shv-enr-5', 1, 'active', '2026-11-30 04:33:27.713+00', 'shv-student-4', 'shv-class-bio-s', 'shv-south', 'student', NULL, NULL, NULL, 5281829703464449956, 12, true, NULL),
	('shv-enr-4', 1, 'active', '2026-11-30 04:33:27.713+00', 'shv-student-3', 'shv-class-bio-s', 'shv-south', 'student', NULL, NULL, NULL, 9145480302973122527, 12, true, NULL),
	('shv-enr-9', 1, 'active', '2026-11-30 04:33:27.713+00', 'shv-coach-1', 'shv-class-bio-s', 'shv-south', 'proctor', NULL, NULL, NULL, 13731159622652317, 12, true, NULL),
	('shv-enr-7', 1, 'active', '2026-11-30 04:33:27.713+00', 'shv-student-3', 'shv-class-art-n', 'shv-north', 'student', NULL, NULL, NULL, 5547514196432258376, 11, true, NULL),
	('shv-enr-8', 1, 'active', '2026-11-30 04:33:27.713+00', 'shv-guardian-1', 'shv-class-art-n', 'shv-north', 'ext:volunteer', false, NULL, NULL, 2980154147137298573, 11, true, NULL),
	('spr-enr-01', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-student-1', 'spr-class-math3-a', 'spr-elementary', 'student', false, '2026-08-17', '2027-06-12', 6170087013429735623, 28, true, NULL),
	('spr-enr-02', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-student-2', 'spr-class-math3-a', 'spr-elementary', 'student', NULL, '2026-08-17', '2027-06-12', 2453803609051906986, 28, true, NULL),
	('spr-enr-03', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-student-6', 'spr-class-math3-a', 'spr-elementary', 'student', NULL, NULL, NULL, 1634626959644032074, 28, true, NULL),
	('spr-enr-04', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-teacher-1', 'spr-class-math3-a', 'spr-elementary', 'teacher', true, '2026-08-17', '2027-06-12', 6978464431822566327, 28, true, NULL),
	('spr-enr-05', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-student-1', 'spr-class-homeroom-3', 'spr-elementary', 'student', NULL, NULL, NULL, 8006606014345646920, 28, true, NULL),
	('spr-enr-06', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-student-2', 'spr-class-homeroom-3', 'spr-elementary', 'student', NULL, NULL, NULL, 4252003479362883294, 28, true, NULL),
	('spr-enr-07', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-teacher-1', 'spr-class-homeroom-3', 'spr-elementary', 'teacher', true, NULL, NULL, 8559311945869087217, 28, true, NULL),
	('spr-enr-08', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-aide-1', 'spr-class-homeroom-3', 'spr-elementary', 'ext:aide', false, NULL, NULL, 2985109705189730978, 28, true, NULL),
	('spr-enr-09', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-student-3', 'spr-class/stats@1', 'spr-high', 'student', NULL, '2026-08-17', '2027-01-16', 8126595714345049386, 29, true, NULL),
	('spr-enr-10', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-student-5', 'spr-class/stats@1', 'spr-high', 'student', NULL, NULL, NULL, 5001353428878549079, 29, true, NULL),
	('spr-enr-11', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-teacher-1', 'spr-class/stats@1', 'spr-high', 'teacher', false, NULL, NULL, 5500998934116655964, 29, true, NULL),
	('spr-enr-12', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-teacher-2', 'spr-class/stats@1', 'spr-high', 'teacher', true, NULL, NULL, 6380582395282164696, 29, true, NULL),
	('spr-enr-14', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-teacher-2', 'spr-class-chem-1', 'spr-high', 'teacher', true, NULL, NULL, 253177881028313120, 29, true, NULL),
	('spr-enr-15', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-proctor@1', 'spr-class-chem-1', 'spr-high', 'proctor', false, NULL, NULL, 4973687130064918383, 29, true, NULL),
	('spr-enr-16', 2, 'active', '2026-11-30 04:33:28.56+00', 'spr-admin-district', 'spr-class-chem-1', 'spr-high', 'administrator', false, NULL, NULL, 6695227240352582265, 29, true, NULL),
	('spr-enr-17', 2, 'tobedeleted', '2026-11-30 04:33:30.25+00', 'spr-student-6', 'spr-class-chem-summer', 'spr-high', 'student', NULL, '2027-06-21', '2027-07-31', 8027533900757389038, 34, false, NULL);
INSERT INTO public.exclusions VALUES
	('\x8d21f66652f831fe9a4be70cf53743e7849ef0d8e094ea507865ab68584639f9', 'hidden', '\xcff6893b55ff934f5b8fdfefe9f193a419dbefc1367871f6054250fe6322f7f1', 'spr-student-4', '2026-11-30 04:33:31.444+00');
INSERT INTO public.feeds VALUES
	(1, 'shelbyville', 'oneroster', NULL, true, NULL, NULL, '2026-11-30 04:33:26.93+00', '\x974fb8d383d1a74858da52ebd65dde7ea9385a334de8d74cec879c7898652e26190aa2fb111fbeef9fa4c043e9c08263', true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{}', 'added', false, NULL, 1, '2026-11-30 04:33:27.713+00', '1970-01-01 00:00:00+00', '{}'),
	(2, 'springfield', 'oneroster', NULL, true, NULL, NULL, '2026-11-30 04:33:27.936+00', '\x6c0fa4eb4951a398a474d5dbd7b0429d00f81fc630bea84806f0f891c28bb64ff42b4965a1052535f27dc44e71793693', true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{}', 'added', false, NULL, 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '{}');
INSERT INTO public.vendor_grants VALUES
	(1, 1, 'spr-district', NULL, NULL, NULL, NULL, true),
	(2, 1, 'shv-district', NULL, NULL, NULL, NULL, true),
	(3, 2, 'spr-district', NULL, NULL, NULL, NULL, true),
	(4, 3, 'spr-district', 'spr-elementary', NULL, NULL, NULL, true),
	(5, 4, 'shv-district', 'shv-north', NULL, NULL, NULL, true),
	(6, 5, 'shv-district', 'shv-south', NULL, NULL, NULL, true),
	(7, 5, 'spr-district', NULL, 'grades~''03''', NULL, 'all', true);
INSERT INTO public.group_members VALUES
	(7, 'classes', 'spr-class-chem-1', '', '', '1970-01-01 00:00:00+00'),
	(7, 'classes', 'spr-class-chem-summer', '', '', '1970-01-01 00:00:00+00'),
	(7, 'classes', 'spr-class-homeroom-3', '', '', '1970-01-01 00:00:00+00'),
	(7, 'classes', 'spr-class-math3-a', '', '', '1970-01-01 00:00:00+00'),
	(7, 'classes', 'spr-class/stats@1', '', '', '1970-01-01 00:00:00+00'),
	(7, 'courses', 'spr-course-math3', '', '', '1970-01-01 00:00:00+00'),
	(7, 'courses', 'spr-course-homeroom', '', '', '1970-01-01 00:00:00+00'),
	(7, 'courses', 'spr-course-chem', '', '', '1970-01-01 00:00:00+00'),
	(7, 'courses', 'spr-course-stats', '', '', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-student-1', 'spr-elementary', 'student', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-student-2', 'spr-elementary', 'student', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-student-6', 'spr-elementary', 'student', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-admin-school', 'spr-high', 'siteAdministrator', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-admin-district', 'spr-high', 'siteAdministrator', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-teacher-1', 'spr-high', 'teacher', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-proctor@1', 'spr-high-science', 'proctor', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-teacher-1', 'spr-elementary', 'teacher', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-aide-1', 'spr-elementary', 'aide', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-teacher-2', 'spr-high', 'teacher', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-proctor@1', 'spr-high', 'proctor', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-admin-district', 'spr-district', 'districtAdministrator', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-parent-1', 'spr-elementary', 'parent', '1970-01-01 00:00:00+00'),
	(7, 'users', 'spr-guardian-1', 'spr-elementary', 'guardian', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-01', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-02', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-03', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-04', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-05', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-06', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-07', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-08', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-11', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-12', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-14', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-15', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-16', '', '', '1970-01-01 00:00:00+00'),
	(7, 'enrollments', 'spr-enr-17', '', '', '1970-01-01 00:00:00+00');
INSERT INTO public.kept_people VALUES
	(1, 'spr-student-3', '2026-11-30 04:33:31.273+00', NULL, '{}', '4f7bdeca-4396-490b-aa62-86e6716ba8e3');
INSERT INTO public.oauth_clients VALUES
	('client-7e62159d3ded119b', 1, 'tests', '\x934961dabdc048e9f475beb8c53e6f78aa5cefca4044c2d565666d993a483cc6', '{v1p1/roster-core.readonly,v1p1/roster.readonly,v1p1/roster-demographics.readonly,v1p1/guardians.readonly,v1p1/guardians-metadata.readonly,v1p1/students-metadata.readonly,v1p1/demographic-metadata.readonly,v1p1/orgs-metadata.readonly,v1p2/roster-core.readonly,v1p2/roster.readonly,v1p2/roster-demographics.readonly,v1p2/guardians.readonly,v1p2/guardians-metadata.readonly,v1p2/students-metadata.readonly,v1p2/demographic-metadata.readonly,v1p2/orgs-metadata.readonly}', true, 1, '2026-11-30 04:33:28.774+00', NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:28.965+00', '2026-11-30 04:33:28.965+00', NULL, NULL, NULL, NULL),
	('client-bdad4409d1d98225', 2, 'tests', '\xe4967c09f584e2ac0bd1a617b2e5a9fbd1aebe889509a26a1fa58fc396b4da02', '{v1p1/roster-core.readonly,v1p1/roster.readonly,v1p1/roster-demographics.readonly,v1p1/guardians.readonly,v1p1/guardians-metadata.readonly,v1p1/students-metadata.readonly,v1p1/demographic-metadata.readonly,v1p1/orgs-metadata.readonly,v1p2/roster-core.readonly,v1p2/roster.readonly,v1p2/roster-demographics.readonly,v1p2/guardians.readonly,v1p2/guardians-metadata.readonly,v1p2/students-metadata.readonly,v1p2/demographic-metadata.readonly,v1p2/orgs-metadata.readonly}', true, 1, '2026-11-30 04:33:28.774+00', NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:29.111+00', '2026-11-30 04:33:29.111+00', NULL, NULL, NULL, NULL),
	('client-fb053f70a298abd3', 3, 'tests', '\x9ee328b21f644738f9149ebc239f655546768b0cd2d3ae44ec949a93295b0fa9', '{v1p1/roster-core.readonly,v1p1/roster.readonly,v1p1/roster-demographics.readonly,v1p1/guardians.readonly,v1p1/guardians-metadata.readonly,v1p1/students-metadata.readonly,v1p1/demographic-metadata.readonly,v1p1/orgs-metadata.readonly,v1p2/roster-core.readonly,v1p2/roster.readonly,v1p2/roster-demographics.readonly,v1p2/guardians.readonly,v1p2/guardians-metadata.readonly,v1p2/students-metadata.readonly,v1p2/demographic-metadata.readonly,v1p2/orgs-metadata.readonly}', true, 1, '2026-11-30 04:33:28.774+00', NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:29.269+00', '2026-11-30 04:33:29.269+00', NULL, NULL, NULL, NULL),
	('client-c21aa7e6e9d5db0b', 4, 'tests', '\xba388591278d9c42615ba626af03d1ba205483eafef798f7869fca0adf73ee4c', '{v1p1/roster-core.readonly,v1p1/roster.readonly,v1p1/roster-demographics.readonly,v1p1/guardians.readonly,v1p1/guardians-metadata.readonly,v1p1/students-metadata.readonly,v1p1/demographic-metadata.readonly,v1p1/orgs-metadata.readonly,v1p2/roster-core.readonly,v1p2/roster.readonly,v1p2/roster-demographics.readonly,v1p2/guardians.readonly,v1p2/guardians-metadata.readonly,v1p2/students-metadata.readonly,v1p2/demographic-metadata.readonly,v1p2/orgs-metadata.readonly}', true, 1, '2026-11-30 04:33:28.774+00', NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:29.438+00', '2026-11-30 04:33:29.438+00', NULL, NULL, NULL, NULL),
	('client-74f8f5416c667b98', 5, 'tests', '\xff84b5d27f220f55a211593c3d354d2979b1b168398f8f3aaeb82c660ca79011', '{v1p1/roster-core.readonly,v1p1/roster.readonly,v1p1/roster-demographics.readonly,v1p1/guardians.readonly,v1p1/guardians-metadata.readonly,v1p1/students-metadata.readonly,v1p1/demographic-metadata.readonly,v1p1/orgs-metadata.readonly,v1p2/roster-core.readonly,v1p2/roster.readonly,v1p2/roster-demographics.readonly,v1p2/guardians.readonly,v1p2/guardians-metadata.readonly,v1p2/students-metadata.readonly,v1p2/demographic-metadata.readonly,v1p2/orgs-metadata.readonly}', true, 1, '2026-11-30 04:33:28.774+00', NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:29.587+00', '2026-11-30 04:33:29.587+00', NULL, NULL, NULL, NULL),
	('client-9d9fc340ceb00124', 6, 'tests', '\x3e4f02f231298eaa4f6bbee3be2c13280156b77f0c19e1a058816900de3b5b6a', '{v1p1/roster-core.readonly,v1p1/roster.readonly,v1p1/roster-demographics.readonly,v1p1/guardians.readonly,v1p1/guardians-metadata.readonly,v1p1/students-metadata.readonly,v1p1/demographic-metadata.readonly,v1p1/orgs-metadata.readonly,v1p2/roster-core.readonly,v1p2/roster.readonly,v1p2/roster-demographics.readonly,v1p2/guardians.readonly,v1p2/guardians-metadata.readonly,v1p2/students-metadata.readonly,v1p2/demographic-metadata.readonly,v1p2/orgs-metadata.readonly}', true, 1, '2026-11-30 04:33:28.774+00', NULL, NULL, NULL, NULL, NULL, '2026-11-30 04:33:29.701+00', '2026-11-30 04:33:29.701+00', NULL, NULL, NULL, NULL);
INSERT INTO public.operators VALUES
	(1, 'owner@district.example', 'Owner', 'owner', true, NULL, '407cfc37-046d-4024-a613-5e4521b388d9', '2026-11-30 04:33:31.707+00', NULL, NULL, NULL);
INSERT INTO public.orgs VALUES
	('shv-district', 1, 'active', '2026-11-30 04:33:27.713+00', '{"city": "Shelbyville"}', 'Shelbyville School District', 'district', '17-0077', NULL, 'shv-district', 8365147985941587596),
	('shv-north', 1, 'active', '2026-11-30 04:33:27.713+00', '{"city": "Shelbyville"}', 'North School', 'school', '17-0077-01', 'shv-district', 'shv-district', 4323667162008672635),
	('shv-south', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, 'South School', 'school', NULL, 'shv-campus', 'shv-district', 6397029910756831502),
	('shv-campus', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, 'South Campus', 'ext:campus', '17-0077-S', 'shv-district', 'shv-district', 955345762547189154),
	('spr-district', 2, 'active', '2026-11-30 04:33:28.56+00', '{"city": "Springfield", "address1": "742 River Road"}', 'Springfield Unified School District', 'district', '17-0042', NULL, 'spr-district', 5646318068626739697),
	('spr-elementary', 2, 'active', '2026-11-30 04:33:28.56+00', '{"city": "Springfield", "principal.name": "Łucja \"Lu\" Nowak"}', 'Springfield Elementary School', 'school', '17-0042-01', 'spr-district', 'spr-district', 3590673931471214875),
	('spr-high', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, 'Springfield High School', 'school', '17-0042-02', 'spr-district', 'spr-district', 6368321659957155800),
	('spr-high-science', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, 'Science Department', 'department', NULL, 'spr-high', 'spr-district', 4792701633764288630);
INSERT INTO public.roster_state VALUES
	(true, 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '20738d59-3158-49ee-ae2f-cfc83988c823', 'postgres', 1, '7713817978947756689/00000001/5/16543', NULL);
INSERT INTO public.signing_keys VALUES
	('0pKclyliE5_nvjqL8X2pTxrZmQOr5zCKEvAcCIrb0Gk', '{"e": "AQAB", "n": "xOjaG_jMHkgbQqsCP-9g7ZI_EjrNzQSvQPF3jtgX_sYIqDsKy8wQ-N_uCHQPWGUnzUoC6NeYL7UsXJdMRcZZIE4COoET1DNpaazNWyE2Pj2X7Mkr4nDZhP16rXpG4aaMHFE2NPyBkqhP9juGu9pQ-tDQNlrXtlgJAb7NUituGTwozXTizT430YJhxM7tcx0u8akDJVB_nHBW8S4akD1pGP8V-sQMogngsqQTo1rd7TVsLbXSHhF5pB2H9zpJT8RV5nv9gEUypuy9rnRTzhcU-s1TPEL4Vh8Kw3MlXXfqAUC5ZyYlEAlY34WoM_qF3C4rBBvFAUBEd9hqYmbLAg1uUQ", "alg": "RS256", "kid": "0pKclyliE5_nvjqL8X2pTxrZmQOr5zCKEvAcCIrb0Gk", "kty": "RSA", "use": "sig"}', '\x67414141414142724450795a5358673750334361635048497566434f586e757a4d78684955333237545132427537615a76495a4d4463306d484b694c41486e4f30756359676935526d535354645376586a6b6345523430354d316d39355448346c55345645725f7555357878617842744242763953374747676b7933554b705264643455354c614c5a4b5f5a396c4d3769433547335f735f79722d4547384454386c5a69583730306d6a46384c4e68774c6e50317565576662565543484141576d77476b31616e522d69497856356147454350767a5f32456272497873706a6f634d5f38687046774243716944444130336e6c30326a3247304150636466477362786c535f6f32325975704c4c673463364161716271365a6f4562424e6e387a366e747753785979355830435f4a686545666d38395a635a3067305a4b6e546b42537639306555777a4f687631476f54455a6d5572397072494c774278777a6b59566d68353732513241416c45472d5662684d754d7745327462425256792d784d733844554f686a74615a45454f6958636d676e68544859544448756745735933456167773959446e326136654a677766755141615a4a4d61744a4153796f6c6370494c42683770486e7935635f5956627434537a79634d487843396e52394e30656c4e6c353450373866367a364c77617945594e645f6e3362637130646a435a4a31656c4d594c575853736f70356b7a77484662425a3257356a744445705435735f4c6c6f4235377433756b7562706c47774e514f4877594267436b6b4f666837774f36327233666b7464685437344b67506539465f7a32334b79593050336c69574f75414c7a544557713451542d6d73465f6e6d354b763573304b36496b5f6755506c5661703333482d41484538614a4a73446476716e324a335f54704861496e34794536594e53336b726d3135566b5359385f435a382d4136564248666f5536686b5658333338795a3446716e546241524258644a704c43477765364467794f4d55597771316d5f4b584252685f7a445177337674452d5238783877472d466545367437543633515f53517a634553374544724757302d582d6c3534484651334f614b554b4c6a355f78496f35306a6454756273377651725f546a7365715232347374434f4d425f58436671596c426548342d77504e3955516e316d70317a4d617a61394a5f515f5234664d5a5247694c5a355164676757314a32524f415479794e74445a314e427355356d79554e6941427a34615a41354441324e564b307568624d4e634c423032484e5756356f4b6f55505a68783234766b53467673355874764252383032316b49396b4d615f5a6e765352413736646b5a755442386d67766467785759343236743869736134464c5153685a674c5f476f55413538707856433444467139727543326759465f38614749694f64636c37445136653934584d4455697944355a775363514e485a73697945793362634c4e4b58566b4f4b575356384353385f6d485f486642786869346e37417839426a63386736526c6d62395f774e4449427a716c42644b536b383341376d41577243666b4b333950395a7537576c69497076524d4178464c2d5548685f3742776e734e4c323632666b397a305f436d49616f4d4536764c4a4c796459624a7671554357526c51384f495161385930524e4677645259734e324a397764696d6a534f6561702d742d51714d415a696a424d6c4a444a334a4c71305f4b7145654b4559484c6a6f78537046645678613147474a372d7a4f6b623344327855566d7042564d4663506f592d69564266304a31346342743466646c5470725757334e6571657955304c2d5f58432d55465a61346d7639743251455365306a30434c6e4b704e3255436e6f324533597971746e7837623852454e48734a43445469746978516951397643306a63457170455376694b76612d4d726433636c4468686434735274305f67535861324f6b7a526530454141776d6a796a536c792d34705f61506a5a6d4b4f4366775357524a69716432684e504b676a617a435f7745456e494a536c54764b796e597a347346626e6442454f615972745a4a50447a30576c6344325647535558697a395837346b4f434a5f5f3469663665377952636e316d6542794d78574d4276523172757542615951766b755a386e5f2d53344855346c416970376e6b7339766b5958685a4a55776a37655f48646c5361495146336c495f45677659625878386e7a75763442796f456a42316f73535a637a4553687237365f394e5f3055316d64753954337a397653666970514670364f446674536871516b567a574c75734f424c7971314c3868746f55366c4371786667423632316643633531655a72526d6f45755f4a5438516875317469676552365975447930577a6b71554c474d495a697972525f39734a546f3138326f4c34416c6641395565796c4a4474784134546f6c414554304f48535f7061705f524e566948623734646d314873536d677832756f776779497669754d4256356177467248383959773852324b34355a4c51333834635736367052544e6f793541626c4453376857656f47484432425941377076474a58624e52396a724b474e3567544b41726b436a397367644f506c6857424f68546f413976577a68767967652d575a4c5f7752644e7a6c4136577553335945736a75486e6a735332526a34326b3959387a43416a766752794435616451583931674c4b68436a582d777a32685a4767353478386d5443466c4b433778724f4132485a6b513643413571767a313177665a4f7453487256696e6c7a614c5247622d4465634e45694956616c6933626b41353650613878693347446c734f354379737366714d6b4d654a794539616e79687351485f64764975456550557151617677454e4e4e4d474f5168447032624d697657354d663138484d6f6d59755645774365495436306a683843455f41434d6e5170777a394845785071374a54336c6e4f796e5367354e476f46736b53467657534e7948776e312d4f5a63564f63337057485067514d61723162394145613678636d524170464d554d6d336e78425f563343744a51594d47763246486255765a646d70416b4670414e67654a534f6656507331762d55396a45333842315a4a5347546f64584f6d6b71416d5664343852365134684c6b58337556527456313457454476783053734e7862595362705a66547749574c6f79385850434844304379497173332d42733d', '2026-11-30 04:33:28.774+00', NULL);
INSERT INTO public.sync_runs VALUES
	(1, 1, 'oneroster 1.2', '/exports/shelbyville-1.2', '2026-11-30 04:33:26.934+00', '2026-11-30 04:33:27.904+00', '2026-11-30 04:33:27.713+00', 'done', '{"orgs": {"added": 4, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "users": {"added": 11, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "classes": {"added": 3, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "courses": {"added": 2, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "enrollments": {"added": 9, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "demographics": {"added": 4, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "academicSessions": {"added": 5, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}}', '{"check": 0.268, "index": 0.034, "stage": 0.335, "write": 0.157, "digest": 0.019, "analyze": 0.005, "compare": 0.056, "prepare": 0.072, "publish": 0.019}', NULL, 0, NULL, '{"the feed shelbyville is new","classes.csv: its metadata columns have no place in the roster and are not kept"}', NULL, NULL, NULL, '[]', true, NULL, '[{"file": "orgs.csv", "mode": "bulk", "rows": 4, "rejected": 0}, {"file": "academicSessions.csv", "mode": "bulk", "rows": 5, "rejected": 0}, {"file": "courses.csv", "mode": "bulk", "rows": 2, "rejected": 0}, {"file": "classes.csv", "mode": "bulk", "rows": 3, "rejected": 0}, {"file": "enrollments.csv", "mode": "bulk", "rows": 9, "rejected": 0}, {"file": "demographics.csv", "mode": "bulk", "rows": 4, "rejected": 0}, {"file": "users.csv", "mode": "bulk", "rows": 11, "rejected": 0}, {"file": "roles.csv", "mode": "bulk", "rows": 15, "rejected": 0}, {"file": "userProfiles.csv", "mode": "bulk", "rows": 3, "rejected": 0}]', 'roster@host', '2026-11-30 02:52:57.125+00'),
	(2, 2, 'oneroster 1.1', '/exports/springfield-1.1', '2026-11-30 04:33:27.939+00', '2026-11-30 04:33:28.738+00', '2026-11-30 04:33:28.56+00', 'done', '{"orgs": {"added": 4, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "users": {"added": 15, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "classes": {"added": 5, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "courses": {"added": 4, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "enrollments": {"added": 17, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "demographics": {"added": 6, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}, "academicSessions": {"added": 7, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 0, "tombstoned": 0}}', '{"check": 0.261, "index": 0.002, "stage": 0.214, "write": 0.15, "digest": 0.006, "analyze": 0.016, "compare": 0.038, "prepare": 0.077, "publish": 0.028}', NULL, 0, NULL, '{"the feed springfield is new"}', NULL, NULL, NULL, '[]', true, NULL, '[{"file": "orgs.csv", "mode": "bulk", "rows": 4, "rejected": 0}, {"file": "academicSessions.csv", "mode": "bulk", "rows": 7, "rejected": 0}, {"file": "courses.csv", "mode": "bulk", "rows": 4, "rejected": 0}, {"file": "classes.csv", "mode": "bulk", "rows": 5, "rejected": 0}, {"file": "enrollments.csv", "mode": "bulk", "rows": 17, "rejected": 0}, {"file": "demographics.csv", "mode": "bulk", "rows": 6, "rejected": 0}, {"file": "users.csv", "mode": "bulk", "rows": 15, "rejected": 0}]', 'roster@host', '2026-11-30 02:52:57.126+00'),
	(3, 2, 'oneroster 1.1', '/exports/changed', '2026-11-30 04:33:29.797+00', '2026-11-30 04:33:30.493+00', '2026-11-30 04:33:30.25+00', 'done', '{"orgs": {"added": 0, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 4, "tombstoned": 0}, "users": {"added": 0, "purged": 0, "changed": 1, "revived": 0, "rejected": 0, "unchanged": 14, "tombstoned": 0}, "classes": {"added": 0, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 5, "tombstoned": 0}, "courses": {"added": 0, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 4, "tombstoned": 0}, "enrollments": {"added": 0, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 16, "tombstoned": 1}, "demographics": {"added": 0, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 5, "tombstoned": 1}, "academicSessions": {"added": 0, "purged": 0, "changed": 0, "revived": 0, "rejected": 0, "unchanged": 7, "tombstoned": 0}}', '{"check": 0.067, "index": 0.002, "stage": 0.113, "write": 0.188, "digest": 0.007, "analyze": 0.003, "compare": 0.15, "prepare": 0.094, "publish": 0.066}', NULL, 0, NULL, '{}', NULL, NULL, NULL, '[]', true, NULL, '[{"file": "orgs.csv", "mode": "bulk", "rows": 4, "rejected": 0}, {"file": "academicSessions.csv", "mode": "bulk", "rows": 7, "rejected": 0}, {"file": "courses.csv", "mode": "bulk", "rows": 4, "rejected": 0}, {"file": "classes.csv", "mode": "bulk", "rows": 5, "rejected": 0}, {"file": "enrollments.csv", "mode": "bulk", "rows": 16, "rejected": 0}, {"file": "demographics.csv", "mode": "bulk", "rows": 5, "rejected": 0}, {"file": "users.csv", "mode": "bulk", "rows": 15, "rejected": 0}]', 'roster@host', '2026-11-30 04:33:29.782+00');
INSERT INTO public.sync_changes VALUES
	(3, 'users', 'spr-student-6', 'changed', '2026-11-30 04:33:28.56+00', '{"roles": [[{"role": "student", "origin": "export", "roleType": "primary", "orgSourcedId": "spr-elementary"}, {"role": "student", "origin": "enrollment", "roleType": "primary", "orgSourcedId": "spr-high"}], [{"role": "student", "origin": "export", "roleType": "primary", "orgSourcedId": "spr-elementary"}]]}'),
	(3, 'enrollments', 'spr-enr-17', 'tombstoned', '2026-11-30 04:33:28.56+00', NULL),
	(3, 'demographics', 'spr-student-6', 'tombstoned', '2026-11-30 04:33:28.56+00', NULL);
INSERT INTO public.user_agents VALUES
	('shv-student-1', 1, 'shv-guardian-1'),
	('shv-teacher-1', 1, 'shv-student-1'),
	('shv-guardian-1', 1, 'shv-student-1'),
	('spr-guardian-1', 1, 'spr-student-1'),
	('spr-guardian-1', 2, 'spr-student-2'),
	('spr-parent-1', 1, 'spr-student-1'),
	('spr-student-1', 1, 'spr-guardian-1'),
	('spr-student-1', 2, 'spr-parent-1'),
	('spr-student-2', 1, 'spr-guardian-1');
INSERT INTO public.user_profiles VALUES
	('shv-student-1', 'shv-profile-1', 'learner', 'example.org/lms', 'lms-1', 'The "learning" portal', '[{"type": "username", "username": "zoe.o"}]', NULL),
	('shv-student-1', 'shv-profile-2', 'library', 'example.org/library', NULL, NULL, '[{"type": "barcode", "username": "9001"}]', NULL),
	('shv-teacher-1', 'shv-profile-3', 'staff', 'example.org/lms', NULL, NULL, '[{"type": "username", "username": "mixed.roles"}]', NULL);
INSERT INTO public.user_roles VALUES
	('shv-coach-1', 1, 'shv-campus', 'ext:coach', 'primary', NULL, NULL, NULL, 'export', 'shv-role-13', NULL),
	('shv-counselor-1', 1, 'shv-north', 'counselor', 'primary', NULL, NULL, NULL, 'export', 'shv-role-10', NULL),
	('shv-counselor-1', 2, 'shv-north', 'aide', 'secondary', NULL, NULL, NULL, 'export', 'shv-role-15', NULL),
	('shv-districtadmin-1', 1, 'shv-district', 'districtAdministrator', 'primary', NULL, NULL, NULL, 'export', 'shv-role-12', NULL),
	('shv-guardian-1', 1, 'shv-north', 'guardian', 'primary', NULL, NULL, NULL, 'export', 'shv-role-14', NULL),
	('shv-principal-1', 1, 'shv-north', 'principal', 'primary', NULL, NULL, NULL, 'export', 'shv-role-09', NULL),
	('shv-student-1', 1, 'shv-north', 'student', 'primary', '2026-09-01', '2027-06-30', 'shv-profile-1', 'export', 'shv-role-01', NULL),
	('shv-student-2', 1, 'shv-north', 'student', 'primary', NULL, NULL, NULL, 'export', 'shv-role-02', NULL),
	('shv-student-3', 1, 'shv-south', 'student', 'primary', NULL, NULL, NULL, 'export', 'shv-role-03', NULL),
	('shv-student-4', 1, 'shv-south', 'student', 'primary', NULL, NULL, NULL, 'export', 'shv-role-04', NULL),
	('shv-sysadmin-1', 1, 'shv-district', 'systemAdministrator', 'primary', NULL, NULL, NULL, 'export', 'shv-role-11', NULL),
	('shv-teacher-1', 1, 'shv-south', 'teacher', 'primary', '2026-09-01', NULL, NULL, 'export', 'shv-role-07', NULL),
	('shv-teacher-1', 2, 'shv-north', 'teacher', 'primary', NULL, NULL, 'shv-profile-3', 'export', 'shv-role-06', NULL),
	('shv-teacher-1', 3, 'shv-south', 'siteAdministrator', 'secondary', NULL, NULL, NULL, 'export', 'shv-role-08', NULL),
	('shv-teacher-1', 4, 'shv-north', 'parent', 'secondary', NULL, NULL, NULL, 'export', 'shv-role-05', NULL),
	('shv-coach-1', 2, 'shv-south', 'proctor', 'primary', NULL, NULL, NULL, 'enrollment', NULL, NULL),
	('shv-guardian-1', 2, 'shv-north', 'ext:volunteer', 'secondary', NULL, NULL, NULL, 'enrollment', NULL, NULL),
	('shv-student-3', 2, 'shv-north', 'student', 'primary', NULL, NULL, NULL, 'enrollment', NULL, NULL),
	('spr-admin-district', 1, 'spr-district', 'districtAdministrator', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-admin-district', 2, 'spr-high', 'siteAdministrator', 'primary', NULL, NULL, NULL, 'enrollment', NULL, NULL),
	('spr-admin-school', 1, 'spr-high', 'siteAdministrator', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-aide-1', 1, 'spr-elementary', 'aide', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-guardian-1', 1, 'spr-elementary', 'guardian', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-parent-1', 1, 'spr-elementary', 'parent', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-proctor@1', 1, 'spr-high-science', 'proctor', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-proctor@1', 2, 'spr-high', 'proctor', 'primary', NULL, NULL, NULL, 'enrollment', NULL, NULL),
	('spr-relative-1', 1, 'spr-high', 'relative', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-student-1', 1, 'spr-elementary', 'student', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-student-2', 1, 'spr-elementary', 'student', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-student-3', 1, 'spr-high', 'student', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-student-5', 1, 'spr-high', 'student', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-teacher-1', 1, 'spr-elementary', 'teacher', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-teacher-1', 2, 'spr-high', 'teacher', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-teacher-2', 1, 'spr-high', 'teacher', 'primary', NULL, NULL, NULL, 'export', NULL, NULL),
	('spr-student-6', 1, 'spr-elementary', 'student', 'primary', NULL, NULL, NULL, 'export', NULL, NULL);
INSERT INTO public.users VALUES
	('shv-coach-1', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'coach', NULL, true, 'Kahuʻāina', 'Kealoha', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5893408704540251733, 5, NULL),
	('shv-counselor-1', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'counselor.n', NULL, true, 'प्रिया', 'शर्मा', NULL, NULL, NULL, NULL, NULL, 'shv-north', NULL, NULL, NULL, NULL, NULL, 7486277322442732894, 2, NULL),
	('shv-districtadmin-1', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'districtadmin', NULL, true, 'Ngozi', 'Okonkwo-Ìṣọ̀lá', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8783537594012530697, 6, NULL),
	('shv-guardian-1', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'guardian.n', NULL, true, 'Máire', 'O’Brien', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '+1-217-555-0153', NULL, 9172782442876831420, 3, NULL),
	('shv-principal-1', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'principal.n', NULL, true, '李', '娜', NULL, NULL, NULL, NULL, NULL, 'shv-north', NULL, 'li.na@example.org', NULL, NULL, NULL, 8246241609380166857, 2, NULL),
	('shv-student-1', 1, 'active', '2026-11-30 04:33:27.713+00', '{"locker": "114"}', 'umi-0001', 'zoe.o', '[{"type": "SIS", "identifier": "N-1"}, {"type": "LDAP", "identifier": "zoe.o"}]', true, 'Zoë', 'O’Brien', 'Quinn', 'Zo', 'Q', 'Brien', 'she/her', 'shv-north', 'N-1', 'zoe@example.org', '+1-217-555-0151', '+1-217-555-0152', '{09}', 6393980216397469531, 7, NULL),
	('shv-student-2', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'anna.a', NULL, true, 'Аnna', 'O''Brien', NULL, NULL, NULL, NULL, 'they/them', 'shv-north', 'N-2', NULL, NULL, NULL, '{09}', 4350203714183867572, 7, NULL),
	('shv-student-3', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'anna.b', NULL, true, 'Anna', 'O''Brien', NULL, NULL, NULL, NULL, NULL, 'shv-south', 'S-1', NULL, NULL, NULL, '{10}', 2724090301370470190, 4, NULL),
	('shv-student-4', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'ivan.s', NULL, false, 'Ivan', 'Ivanov', NULL, NULL, NULL, NULL, NULL, NULL, 'S-2', NULL, NULL, NULL, '{10}', 7559049833425736574, 8, NULL),
	('shv-sysadmin-1', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, NULL, 'sysadmin', NULL, true, 'Ünal', 'Çelik', NULL, NULL, NULL, NULL, NULL, 'shv-district', NULL, NULL, NULL, NULL, NULL, 2049048207562552289, 6, NULL),
	('shv-teacher-1', 1, 'active', '2026-11-30 04:33:27.713+00', NULL, 'umi-0100', 'mixed.roles', NULL, true, 'Zoë', 'Mc Kay', NULL, NULL, NULL, NULL, NULL, 'shv-south', 'T-9', 'zoe.mckay@example.org', NULL, NULL, NULL, 2787668132711650443, 10, NULL),
	('spr-admin-district', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'r.de-la-cruz', NULL, true, 'Ramón', 'de la Cruz', NULL, NULL, NULL, NULL, NULL, 'spr-district', 'A-2', 'ramon@example.org', NULL, NULL, NULL, 531154803018703204, 20, NULL),
	('spr-admin-school', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'anna.gross', NULL, true, 'Anna-Lena', 'Groß', NULL, NULL, NULL, NULL, NULL, 'spr-high', 'A-1', 'anna.gross@example.org', '+1-217-555-0111', NULL, NULL, 871398520975988617, 16, NULL),
	('spr-aide-1', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'aide.one', NULL, true, 'Nguyễn Thị', 'Minh', NULL, NULL, NULL, NULL, NULL, 'spr-elementary', NULL, 'minh@example.org', NULL, NULL, NULL, 1190575328808445619, 15, NULL),
	('spr-guardian-1', 2, 'active', '2026-11-30 04:33:28.56+00', '{"busRoute": "none"}', NULL, 'siobhan.obrien', NULL, true, 'Siobhán', 'O''Brien', NULL, NULL, NULL, NULL, NULL, 'spr-elementary', NULL, 'siobhan.obrien@example.org', NULL, '+1-217-555-0103', NULL, 1696617563551433580, 21, NULL),
	('spr-parent-1', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'padraig.obrien', NULL, true, 'Pádraig', 'O''Brien', NULL, NULL, NULL, NULL, NULL, 'spr-elementary', NULL, NULL, '+1-217-555-0104', NULL, NULL, 3238100082455273741, 21, NULL),
	('spr-proctor@1', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'proctor.one', NULL, true, 'O', '''', NULL, NULL, NULL, NULL, NULL, 'spr-high-science', NULL, NULL, NULL, NULL, NULL, 9220742552908039598, 27, NULL),
	('spr-student-1', 2, 'active', '2026-11-30 04:33:28.56+00', '{"busRoute": "7", "lunch.plan": "free"}', NULL, 'zoe.obrien', '[{"type": "LDAP", "identifier": "zoe.obrien"}, {"type": "LTI", "identifier": "5f3c-01"}]', true, 'Zoë', 'O''Brien', 'Maeve', NULL, NULL, NULL, NULL, 'spr-elementary', 'S-1001', 'zoe.obrien@example.org', '+1-217-555-0101', '+1-217-555-0102', '{03}', 8805325431529953702, 18, NULL),
	('spr-student-2', 2, 'active', '2026-11-30 04:33:28.56+00', '{"busRoute": "7"}', NULL, 'conor.obrien', NULL, true, 'Conor', 'O''Brien', NULL, NULL, NULL, NULL, NULL, 'spr-elementary', 'S-1002', 'conor.obrien@example.org', NULL, NULL, '{03}', 6582353194143736692, 18, NULL),
	('spr-student-3', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'wang.xiaoming', '[{"type": "LDAP", "identifier": "wang.xiaoming"}]', true, '小明', '王', NULL, NULL, NULL, NULL, NULL, 'spr-high', 'S-2001', 'wang.xiaoming@example.org', NULL, NULL, '{11}', 6757321892394487158, 25, NULL),
	('spr-student-5', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'mohamed.alfassi', NULL, false, 'محمد', 'الفاسي', NULL, NULL, NULL, NULL, NULL, 'spr-high', 'S-2003', NULL, NULL, NULL, '{11,12}', 3863819202980851535, 25, NULL),
	('spr-teacher-1', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'lukasz.zolc', '[{"type": "State", "identifier": "IL-88:21"}]', true, 'Łukasz', 'Żółć', NULL, NULL, NULL, NULL, NULL, 'spr-elementary', 'T-1', 'lukasz.zolc@example.org', NULL, '+1-217-555-0110', NULL, 8135622840953196203, 19, NULL),
	('spr-teacher-2', 2, 'active', '2026-11-30 04:33:28.56+00', NULL, NULL, 'dimitra.p', NULL, true, 'Δήμητρα', 'Παπαδοπούλου', NULL, NULL, NULL, NULL, NULL, 'spr-high', 'T-2', 'dimitra.p@example.org', NULL, NULL, NULL, 1298028714457258062, 24, NULL),
	('spr-student-6', 2, 'active', '2026-11-30 04:33:30.25+00', NULL, NULL, '100%_sure', NULL, true, 'Jón_%', 'Null', NULL, NULL, NULL, NULL, NULL, 'spr-elementary', 'S-1003', 'jon@example.org', NULL, NULL, '{03}', 8362132944367771176, 18, '2026-11-30 04:33:30.25+00'),
	('spr-relative-1', 2, 'active', '2026-11-30 04:33:31.463+00', NULL, NULL, 'olga.ivanova', NULL, true, 'Ольга', 'Иванова', NULL, NULL, NULL, NULL, NULL, 'spr-high', NULL, NULL, NULL, NULL, NULL, 3839017395224007846, 26, NULL);
INSERT INTO public.vendor_defaults VALUES
	(true, '{}', false, false);
INSERT INTO public.visibility_labels VALUES
	(1, 1, '\xfd0e97ef8e69c3042aa3524dc04e70ae399e0bc5cb37d2deb0685cac91469277', '{}', '{shv-south}', '{}', '{}', '{}', '{}'),
	(2, 1, '\xaaac79e1910946987f3173fd5730c7f036c234e1bc3be11a488405fe1ff80b72', '{}', '{shv-north}', '{}', '{}', '{}', '{}'),
	(3, 1, '\x6740841c53c3d2f8fe9b5df13a4d939b6367e0693d001432a701d82112045894', '{}', '{shv-north}', '{shv-north}', '{}', '{}', '{}'),
	(4, 1, '\x2245bdf190fe03330157eb9147bbd1cf5423a9a7854ae98567cbbebb218cf3b4', '{}', '{shv-north,shv-south}', '{}', '{}', '{shv-north,shv-south}', '{}'),
	(5, 1, '\x4a90fecebd72782be4d05e78c6631988774e9457938ac8c3576850ea6dc33ff8', '{}', '{shv-campus,shv-south}', '{}', '{}', '{}', '{}'),
	(6, 1, '\xb8263221e6f015a1c75eae4b099ba094e9bf5d446710a89ca96cd74091471a5a', '{}', '{shv-district}', '{}', '{}', '{}', '{}'),
	(7, 1, '\x7cf2a7354aed35b93aa1840c60a2e4244fe2f68adf8eeebf55b31ea5a702b258', '{}', '{shv-north}', '{}', '{}', '{shv-north}', '{}'),
	(8, 1, '\x1eb29b2d681eb3435d4fc2f3762bd7daa15389bcdd11c1a330dec7b39d849868', '{}', '{shv-south}', '{}', '{}', '{shv-south}', '{}'),
	(10, 1, '\x924e58694d940a72766c8e397cdb873f3effb40a10af9ce3603cb3fb5fb8b930', '{}', '{shv-north,shv-south}', '{shv-north}', '{}', '{}', '{shv-north,shv-south}'),
	(11, 1, '\xaeb8fb103e60d3232d592661a179809ca79efed2d56835258ede3af9b740f7fc', '{shv-north}', '{shv-north}', '{}', '{}', '{}', '{}'),
	(12, 1, '\xb097c587d1e968c40ab25a0ab34342c783143a774501c8bcd93c99d9f216265c', '{shv-south}', '{shv-south}', '{}', '{}', '{}', '{}'),
	(13, 1, '\x4c458826770c15fc3a4d264a23e5e50b45e873fb7182904f9a3e64d804b7b988', '{}', '{}', '{}', '{shv-district}', '{}', '{}'),
	(14, 1, '\x16ec4352fa08753fb7d6227ac73225f824cc7cc7ebe519bd31d0e12fc14008e3', '{}', '{}', '{}', '{shv-north}', '{}', '{}'),
	(15, 2, '\xa931df745c4ef75cf0648c0ddc6c192cc45ca47af8fa5cf63b0e4536b679eefc', '{}', '{spr-elementary}', '{}', '{}', '{}', '{}'),
	(16, 2, '\x68bea2329f94fce9336c29a172c6e9c08fa5beb2135cd0df1d69677bf9eb0031', '{}', '{spr-high}', '{}', '{}', '{}', '{}'),
	(18, 2, '\xf7b75f2391df990054da78a897f71bcb6882505b23ae82e23c5655c149f5b070', '{}', '{spr-elementary}', '{}', '{}', '{spr-elementary}', '{}'),
	(19, 2, '\x74957e252e031b1b6e31c4bccd1ca99d1e7396a58704546321dca9e6401d94d6', '{}', '{spr-elementary,spr-high}', '{}', '{}', '{}', '{spr-elementary,spr-high}'),
	(20, 2, '\x39e47bedfa4fbb8ab1e017d3955728c0b3d8f0cbae060aad10c2c1653baf7e95', '{}', '{spr-district,spr-high}', '{}', '{}', '{}', '{}'),
	(21, 2, '\x347dbcfa6a25f519efc75381b01b984ef059d0ab29d44899de93924a3fa82ba7', '{}', '{}', '{spr-elementary}', '{}', '{}', '{}'),
	(23, 2, '\xe5fd2445f83840d73ccfcc3777853ad4b907585991ddbb7a086ccf3a8441307d', '{}', '{spr-elementary,spr-high}', '{}', '{}', '{spr-elementary,spr-high}', '{}'),
	(24, 2, '\xcb300cef2645d415e137da746783104d5257a37552bce33727a65f2709ea9c16', '{}', '{spr-high}', '{}', '{}', '{}', '{spr-high}'),
	(25, 2, '\x1cb396289bc0e7a02992691096448836bf401c080a40ff9141fa176766f7afef', '{}', '{spr-high}', '{}', '{}', '{spr-high}', '{}'),
	(26, 2, '\xb3852187eab24fa776bf6eec91e642b27ab75ee41bcd276ff1863f57bb89ac6d', '{}', '{}', '{spr-high}', '{}', '{}', '{}'),
	(27, 2, '\x709af0c193590d1613b0642b29a7f2ebc3f3209db1092a6c839d3e3c8fa529b8', '{}', '{spr-high,spr-high-science}', '{}', '{}', '{}', '{}'),
	(28, 2, '\x240c54efbe9fa9d5b16a528832ec5037016197263a4bc8d36fb9a6ce90638df2', '{spr-elementary}', '{spr-elementary}', '{}', '{}', '{}', '{}'),
	(29, 2, '\x227e32b86c3340644f354fd3b32f53890acdd032e9355b24c66b7eb0bb3e7406', '{spr-high}', '{spr-high}', '{}', '{}', '{}', '{}'),
	(30, 2, '\x32c8773adacfdcad67c255a2fd130ff9e6b108133a0c72884c03e493cf55f751', '{}', '{}', '{}', '{spr-high}', '{}', '{}'),
	(31, 2, '\xfcdc255c196530f8a185f2f8fbe22013dc922705c0b609e066dab4208b2d9731', '{}', '{}', '{}', '{spr-district}', '{}', '{}'),
	(34, 2, '\x6aada6f7742595575633f49bc4eb5a824ebf967d63099a82ab51c16abdd4465c', '{spr-high}', '{spr-elementary}', '{}', '{}', '{}', '{}');
INSERT INTO public.visible_feeds VALUES
	(4, 1, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207', '19bc07a8b526f00d2a6958d6f6756d52875995e0eef4d08d4bdbae2f97c27938', 1, '2026-11-30 04:33:27.713+00', '1970-01-01 00:00:00+00', '2026-11-30 04:33:29.418+00', NULL),
	(4, 0, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207', '7cd2e915245997d7bef4e99b855e17177a1ce4a675a2fc6d3a60ae816a40eb01', 11, '2026-11-30 04:33:29.418+00', '2026-11-30 04:33:29.418+00', '2026-11-30 04:33:29.418+00', NULL),
	(6, 0, 'b8c54365-d8d7-4c37-9ea4-e539d83dff21', '1f0d6dc93917e90645bb1d9812ece5f9db1bd4a094e36b1453c28c7930b2acf0', 14, '2026-11-30 04:33:29.687+00', '2026-11-30 04:33:29.687+00', '2026-11-30 04:33:29.687+00', NULL),
	(2, 2, 'f9b10982-e9ab-43f2-ae75-385119a79d64', '6aba8785169af2536b51a2df780256af233c03ce58a70239e0d09196b42bf0e0', 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.186+00', '2026-11-30 04:33:30.25+00'),
	(2, 0, 'f9b10982-e9ab-43f2-ae75-385119a79d64', '76352531aafcced8898287fd6001f322fda3bef9b19417c72bd7e353ad09c099', 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.186+00', '2026-11-30 04:33:30.25+00'),
	(3, 2, '371d178b-f37b-4390-80f9-5e5b222dcf2b', 'ec62f9dd1d755cbe9d012ae5dbfe10550c46936fb9ca14ab5b5941f5475ccb53', 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:29.253+00', '2026-11-30 04:33:30.25+00'),
	(3, 0, '371d178b-f37b-4390-80f9-5e5b222dcf2b', '986de5d7bbf72861b30c299a36aa8a5e37e749fdc53212c8675dc66ffd8367a1', 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:29.253+00', '2026-11-30 04:33:30.25+00'),
	(5, 1, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', '15199413bbf57e2dd33fb82c651314cfe8157225281267966f287690457f3e95', 1, '2026-11-30 04:33:27.713+00', '1970-01-01 00:00:00+00', '2026-11-30 04:33:30.926+00', NULL),
	(1, 1, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', '3051d34b7a1c980c2afaf91d85633c03b0335d504783dbc25dc5123a6866401d', 1, '2026-11-30 04:33:27.713+00', '1970-01-01 00:00:00+00', '2026-11-30 04:33:28.944+00', NULL),
	(1, 2, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', 'da9348f31afc794b517401c8d7e1e5cb0b268bd634fff7f433299ab13b99fa9a', 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:28.944+00', '2026-11-30 04:33:30.25+00'),
	(1, 0, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', '99ed17594bc6bb5d09407199c629dfa40c887af2a09fd3070bdfcd5e5280b013', 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:28.944+00', '2026-11-30 04:33:30.25+00'),
	(5, 2, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', 'a78d77c07a4e80dd3facc0d4149fc468fa610186ef4c1748822b9c0c27f2feb2', 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:30.926+00', '2026-11-30 04:33:30.25+00'),
	(5, 0, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', '57458a2276bf9d8a8aecda72b4d99797289bac0d1ad0f552574f047dff38e6b6', 20, '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:31.463+00', '2026-11-30 04:33:30.926+00', '2026-11-30 04:33:30.25+00');
INSERT INTO public.visible_groups VALUES
	(5, 7, '78431f8e-39b7-4be5-9081-c6c4da5e9b92');
INSERT INTO public.visible_labels VALUES
	(3, 15, true, false, false, '371d178b-f37b-4390-80f9-5e5b222dcf2b'),
	(3, 19, true, false, true, '371d178b-f37b-4390-80f9-5e5b222dcf2b'),
	(3, 31, true, false, false, '371d178b-f37b-4390-80f9-5e5b222dcf2b'),
	(3, 18, true, true, false, '371d178b-f37b-4390-80f9-5e5b222dcf2b'),
	(3, 21, false, false, false, '371d178b-f37b-4390-80f9-5e5b222dcf2b'),
	(3, 28, true, false, false, '371d178b-f37b-4390-80f9-5e5b222dcf2b'),
	(3, 23, true, true, false, '371d178b-f37b-4390-80f9-5e5b222dcf2b'),
	(4, 4, true, true, false, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207'),
	(4, 10, true, false, true, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207'),
	(4, 14, true, false, false, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207'),
	(4, 13, true, false, false, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207'),
	(4, 2, true, false, false, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207'),
	(4, 7, true, true, false, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207'),
	(4, 11, true, false, false, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207'),
	(4, 3, true, false, false, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207'),
	(1, 15, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 19, true, false, true, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 5, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 29, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 4, true, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 10, true, false, true, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 6, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(5, 5, true, false, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92'),
	(5, 4, true, true, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92'),
	(5, 10, true, false, true, '78431f8e-39b7-4be5-9081-c6c4da5e9b92'),
	(5, 13, true, false, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92'),
	(5, 1, true, false, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92'),
	(5, 8, true, true, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92'),
	(5, 12, true, false, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92'),
	(1, 31, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 14, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 13, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 2, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 7, true, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 20, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 1, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 18, true, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 27, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 8, true, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 11, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 26, false, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 30, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 21, false, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 3, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 28, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(2, 15, true, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 19, true, false, true, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 29, true, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 31, true, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 20, true, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 18, true, true, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 27, true, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 26, false, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 30, true, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 21, false, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 28, true, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 34, true, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 16, true, false, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 24, true, false, true, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 25, true, true, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(2, 23, true, true, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64'),
	(1, 34, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 16, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 12, true, false, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 24, true, false, true, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 25, true, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3'),
	(1, 23, true, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3');
INSERT INTO public.visible_orgs VALUES
	(3, 'spr-district', 2, false, false, '371d178b-f37b-4390-80f9-5e5b222dcf2b', 'spr-district', '17-0042', false, false),
	(3, 'spr-elementary', 2, true, false, '371d178b-f37b-4390-80f9-5e5b222dcf2b', 'spr-district', NULL, true, false),
	(4, 'shv-district', 1, false, false, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207', 'shv-district', '17-0077', false, false),
	(4, 'shv-north', 1, true, false, 'cb61d5d2-2e7b-4d81-a3fc-3701b8ee4207', 'shv-district', NULL, true, false),
	(5, 'shv-district', 1, false, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', 'shv-district', '17-0077', false, false),
	(5, 'shv-south', 1, true, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', 'shv-district', NULL, true, false),
	(5, 'spr-district', 2, false, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', 'spr-district', '17-0042', true, true),
	(5, 'spr-elementary', 2, false, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', 'spr-district', NULL, true, true),
	(5, 'spr-high', 2, false, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', 'spr-district', NULL, true, true),
	(5, 'spr-high-science', 2, false, false, '78431f8e-39b7-4be5-9081-c6c4da5e9b92', 'spr-district', NULL, true, true),
	(2, 'spr-district', 2, true, true, 'f9b10982-e9ab-43f2-ae75-385119a79d64', 'spr-district', '17-0042', true, false),
	(2, 'spr-elementary', 2, true, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64', 'spr-district', NULL, true, false),
	(2, 'spr-high', 2, true, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64', 'spr-district', NULL, true, false),
	(2, 'spr-high-science', 2, true, false, 'f9b10982-e9ab-43f2-ae75-385119a79d64', 'spr-district', NULL, true, false),
	(1, 'shv-district', 1, true, true, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', 'shv-district', '17-0077', true, false),
	(1, 'shv-north', 1, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', 'shv-district', NULL, true, false),
	(1, 'shv-south', 1, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', 'shv-district', NULL, true, false),
	(1, 'shv-campus', 1, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', 'shv-district', NULL, true, false),
	(1, 'spr-district', 2, true, true, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', 'spr-district', '17-0042', true, false),
	(1, 'spr-elementary', 2, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', 'spr-district', NULL, true, false),
	(1, 'spr-high', 2, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', 'spr-district', NULL, true, false),
	(1, 'spr-high-science', 2, true, false, '4f7bdeca-4396-490b-aa62-86e6716ba8e3', 'spr-district', NULL, true, false);
SELECT pg_catalog.setval('public.audit_days_id_seq', 1, false);
SELECT pg_catalog.setval('public.audit_people_number_seq', 1, false);
SELECT pg_catalog.setval('public.changes_id_seq', 34, true);
SELECT pg_catalog.setval('public.deletion_requests_id_seq', 1, true);
SELECT pg_catalog.setval('public.deliveries_id_seq', 1, false);
SELECT pg_catalog.setval('public.delivery_runs_id_seq', 1, false);
SELECT pg_catalog.setval('public.feeds_id_seq', 3, true);
SELECT pg_catalog.setval('public.operator_sessions_id_seq', 1, false);
SELECT pg_catalog.setval('public.operators_id_seq', 1, true);
SELECT pg_catalog.setval('public.sync_runs_id_seq', 3, true);
SELECT pg_catalog.setval('public.vendor_grants_id_seq', 7, true);
SELECT pg_catalog.setval('public.vendors_id_seq', 6, true);
SELECT pg_catalog.setval('public.visibility_labels_id_seq', 34, true);
