"""Files as strangers have them: pieces to make some of, and what is known of the collected ones."""

from hypothesis import strategies as st

PIECES = [b",", b";", b"\t", b"|", b'"', b'""', b"\n", b"\r", b"\r\n", b" ", b"a", b"1", b"text", b"label"]
BYTES = [
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xe9",
    b"\x80",
    b"\xc3\xa9",
    b"\xf0\x9f\x98\x80",
    b"\xed\xa0\x80",
]
JSON = [b"{", b"}", b"[", b"]", b":", b'{"text": ', b"null", b"NaN", b"1e999", b"\\ud800", b"\\u0000"]
CSV_BYTES = st.lists(st.sampled_from(PIECES * 3 + BYTES), max_size=40).map(b"".join)
JSON_BYTES = st.lists(st.sampled_from(PIECES + BYTES + JSON * 2), max_size=30).map(b"".join)

REFUSED = {
    "ck_null_byte.csv": "line 2: a NUL byte",
    "ck_ragged.csv": "lines 2, 3:",
    "mt_big5.csv": "perhaps big5; say `encoding:`",
    "mt_cr_only_title_line.csv": "line 1: 1 of 19 columns have a name",
    "dt_unescaped_quotes.csv": "line 2: a quote inside a quoted field",
    "dt_nul_mid_file.txt": "line 5: a NUL byte",
    "fr_duplicate_headers.csv": "two columns are called 'id'",
    "fr_mixed_escape.csv": "lines 2, 3, 4: a quote after a space",
    "fr_defective_rows.csv": "lines 2, 3:",
    "real_cfpb_truncated_mid_quote.csv": "never closed",
    "real_mtsamples_truncated_mid_quote.csv": "never closed",
}
COUNTS = {
    "clinical/counsel_chat_815_questions.csv": 815,
    "clinical/meqsum_chq_train.jsonl": 1000,
    "clinical/mts_dialog_gender.csv": 1701,
    "clinical/mts_dialog_test1.csv": 200,
    "clinical/mts_dialog_test2.csv": 200,
    "clinical/mts_dialog_train.csv": 1201,
    "clinical/mts_dialog_valid.csv": 100,
    "clinical/mtsamples_401_noheader.csv": "line 1: reads like a record",
    "clinical/mtsamples_500_specialty_gender.csv": 500,
    "complaints/cfpb_1532_narratives.csv": 1532,
    "complaints/cfpb_2085_product_narrative.csv": 2085,
    "complaints/cfpb_6623.csv": 6623,
    "dialogues/diagnosis_600.csv": 600,
    "dialogues/gender_0.3.csv": 600,
    "dialogues/gender_0.5.csv": 600,
    "dialogues/gender_0.7.csv": 600,
    "dialogues/gender_pool.csv": 1517,
    "dialogues/genmedgpt5k_synthetic.csv": 5452,
    "dialogues/real_patient_doctor_qa.csv": 3127,
    "reviews/druglib_4143.tsv": 4143,
    "reviews/druglib_4143_clean.csv": 4143,
    "reviews/womens_clothing_1000.csv": 1000,
    "reviews/yelp_la_reviews_2973.csv": 2973,
    "reviews/yelp_nyc_cuisine_reviews.csv": 3560,
    "stance/test.csv": 1956,
    "stance/train.csv": 2914,
    "stance/tweet.csv": 4870,
    "stance/tweet_no_feminist_3921.csv": 3921,
    "stance/tweet_stance_full.csv": 4870,
}
