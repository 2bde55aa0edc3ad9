import QtQuick
import QtQuick.Layouts

// A value of the policy in words: shown as it holds, applied with Return or the button that appears when it differs.
RowLayout {
    id: line
    property string label: ""
    property string value: ""
    property string hint: ""
    property string unit: ""
    property real fieldWidth: -1
    signal applied(string text)
    function begin() { field.forceActiveFocus() }
    spacing: 8
    Layout.fillWidth: true
    Text { text: line.label; color: look.c.text; Layout.preferredWidth: 216; elide: Text.ElideRight }
    Field {
        id: field
        mono: true
        text: line.value
        placeholderText: line.hint
        Accessible.name: line.label
        Layout.fillWidth: line.fieldWidth < 0
        Layout.preferredWidth: line.fieldWidth < 0 ? 200 : line.fieldWidth
        onAccepted: line.applied(text)
        Keys.onEscapePressed: text = line.value
    }
    Text { visible: line.unit !== ""; text: line.unit; color: look.c.text_soft }
    PlainButton { visible: field.text !== line.value; text: "Apply"; primary: true; focusPolicy: Qt.ClickFocus; tip: "Return"; onClicked: line.applied(field.text) }
    Item { visible: line.fieldWidth >= 0; Layout.fillWidth: true }
    onValueChanged: {
        field.text = value
        if (!field.activeFocus) field.cursorPosition = 0
    }
}
